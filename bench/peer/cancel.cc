// 64 MiB that are given up while they move, over a network that needs a minute for them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "bench/common/statistics.h"
#include "bench/peer/others.h"
#include "bench/peer/rows.h"

namespace slime::bench {
namespace {

using namespace std::chrono_literals;

struct Ends {
  Samples ms;       // from cancel() to the end of the request
  Samples next_ms;  // from then until 8 bytes were read
  int done = 0, quiet = 0;
};

void cancel_one(EngineWithMemory& here, const Target& target, bool writes, Ends* ends) {
  const auto piece = here.region.to(target.remote, 0, 0, kLong);
  auto request = writes ? target.peer.write(piece).start() : target.peer.read(piece).start();
  std::this_thread::sleep_for(300ms);
  const uint64_t begin_ns = steady_now_ns();
  request.cancel();
  try {
    (void)request.wait();
    ++ends->done;
  } catch (const p2p::Error& error) {
    ends->quiet += error.quiet();
  }
  ends->ms.add(seconds_since(begin_ns) * 1e3);
  const uint64_t next_ns = steady_now_ns();
  (void)target.peer.read(here.region.to(target.remote, 0, 0, 8)).start().wait();
  ends->next_ms.add(seconds_since(next_ns) * 1e3);
}

}  // namespace

void cancel_row() {
  const Others others(1, kLong);
  EngineWithMemory here(SLIME_OPTIONS_INIT, kLong);
  const Target target(here.engine, others.known[0]);
  for (const bool writes : {true, false}) {
    Ends ends;
    for (int i = 0; i < 10; ++i) cancel_one(here, target, writes, &ends);
    std::printf(
        "cancel     %s of 64 MiB: %zu ended %.0f ms after it (median; most %.0f), %d quiet, %d "
        "were "
        "done; the next 8 bytes took %.0f ms (most %.0f)\n",
        writes ? "writes" : "reads", ends.ms.count(), ends.ms.median(), ends.ms.quantile(1),
        ends.quiet, ends.done, ends.next_ms.median(), ends.next_ms.quantile(1));
  }
}

}  // namespace slime::bench
