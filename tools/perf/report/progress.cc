#include "tools/perf/report/progress.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <initializer_list>

#include "base/clock.h"
#include "rendezvous/launcher.h"

namespace slime::perf {
namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kQuietTerminal = 2 * kSecond;  // short rows come and go without it
constexpr uint64_t kQuietLog = 10 * kSecond;

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

}  // namespace

ProgressLine::ProgressLine(const Pulse* pulse, bool wanted)
    : pulse_(pulse),
      wanted_(wanted),
      terminal_(isatty(STDERR_FILENO) == 1),
      last_output_ns_(now_ns()) {}

void ProgressLine::set_total(size_t rows, double duration_s) {
  const std::lock_guard lock(mutex_);
  total_ = rows;
  seconds_ = static_cast<double>(rows) * duration_s;
  began_ns_ = now_ns();
}

std::string ProgressLine::text(uint64_t now) const {
  char text[96] = "";
  if (began_ns_ != 0) {
    const double elapsed_s = static_cast<double>(now - began_ns_) / 1e9;
    int used = snprintf(text, sizeof text, "%.0f s", elapsed_s);
    if (seconds_ > 0) {
      used +=
          snprintf(text + used, sizeof text - static_cast<size_t>(used), " of %.0f s", seconds_);
    }
    snprintf(text + used, sizeof text - static_cast<size_t>(used), ", row %zu of %zu: ", rows_ + 1,
             total_);
  }
  return text + pulse_->where();
}

// At once, as the ranks may be in an operation that takes a while.
void ProgressLine::answer_end_request() {
  if (answered_ || !end_requested()) return;
  answered_ = true;
  erase();
  fputs("slime-perf: stopping after this operation; a second request stops at once\n", stderr);
}

void ProgressLine::tick() {
  const std::lock_guard lock(mutex_);
  const uint64_t now = now_ns();
  if (!wanted_) return;
  answer_end_request();
  if (now < last_output_ns_ + (terminal_ ? kQuietTerminal : kQuietLog)) return;
  if (terminal_) {
    fprintf(stderr, "\r\033[Kslime-perf: %s", text(now).c_str());
    fflush(stderr);
    shown_ = true;
    return;
  }
  fprintf(stderr, "slime-perf: %s\n", text(now).c_str());
  last_output_ns_ = now;
}

void ProgressLine::before_row() {
  const std::lock_guard lock(mutex_);
  erase();
  if (wanted_) answer_end_request();
}

void ProgressLine::after_row() {
  const std::lock_guard lock(mutex_);
  ++rows_;
  last_output_ns_ = now_ns();
}

void ProgressLine::erase() {
  if (shown_) fputs("\r\033[K", stderr);
  shown_ = false;
}

namespace {

std::atomic<uint64_t> requested_ns{0};  // 0: not yet
static_assert(decltype(requested_ns)::is_always_lock_free, "a signal handler may hold no lock");

void on_signal(int number) {
  const uint64_t now = SteadyClock::instance().now_ns();
  uint64_t first = 0;
  if (requested_ns.compare_exchange_strong(first, now) || now < first + rendezvous::kSameRequestNs)
    return;
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
