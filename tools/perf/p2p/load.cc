#include "tools/perf/p2p/load.h"

#include <time.h>

#include <algorithm>
#include <numeric>

#include "base/clock.h"

namespace slime::perf::p2p {

uint64_t process_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t Sample::percentile(double share) const {
  if (latencies_ns.empty()) return 0;
  std::vector<uint64_t> sorted = latencies_ns;
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(at), sorted.end());
  return sorted[at];
}

double Sample::mean_ns() const {
  return mean_of(std::accumulate(latencies_ns.begin(), latencies_ns.end(), uint64_t{0}));
}

Result<void> measure(const Requests& requests, uint32_t concurrency, uint64_t bytes_each,
                     double seconds, Sample* sample) {
  std::vector<uint64_t> began_ns(concurrency, 0);
  const uint64_t begin_ns = steady_now_ns(), cpu_ns = process_cpu_ns();
  const uint64_t end_ns = begin_ns + static_cast<uint64_t>(seconds * 1e9);
  uint32_t open = 0;
  const auto begin = [&](uint32_t slot) {
    began_ns[slot] = steady_now_ns();
    auto begun = requests.begin(slot);
    sample->calls_ns += steady_now_ns() - began_ns[slot];
    return begun;
  };
  for (uint32_t slot = 0; slot < concurrency; ++slot, ++open) {
    if (auto begun = begin(slot); !begun) return begun;
  }
  for (uint32_t slot = 0; open > 0; slot = (slot + 1) % concurrency) {
    if (began_ns[slot] == 0) continue;
    if (auto done = requests.wait(slot); !done) return done;
    const uint64_t now_ns = steady_now_ns();
    sample->latencies_ns.push_back(now_ns - began_ns[slot]);
    sample->bytes += bytes_each;
    began_ns[slot] = 0;
    if (now_ns >= end_ns) {
      --open;
    } else if (auto begun = begin(slot); !begun) {
      return begun;
    }
  }
  sample->ns += steady_now_ns() - begin_ns;
  sample->cpu_ns += process_cpu_ns() - cpu_ns;
  return {};
}

}  // namespace slime::perf::p2p
