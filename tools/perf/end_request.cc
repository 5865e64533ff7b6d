#include "tools/perf/end_request.h"

#include <atomic>
#include <csignal>
#include <initializer_list>

#include "base/clock.h"

namespace slime::perf {
namespace {

std::atomic<uint64_t> requested_ns{0};  // 0: not yet
static_assert(decltype(requested_ns)::is_always_lock_free, "a signal handler may hold no lock");

void on_signal(int number) {
  const uint64_t now = SteadyClock::instance().now_ns();
  uint64_t first = 0;
  if (requested_ns.compare_exchange_strong(first, now) || now < first + kSameRequestNs) return;
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

}  // namespace

void catch_end_requests() {
  (void)SteadyClock::instance();  // made here: a signal handler may not
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // Ignored: it is the launcher's to pass on.
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

bool end_requested() { return requested_ns.load(std::memory_order_relaxed) != 0; }

}  // namespace slime::perf
