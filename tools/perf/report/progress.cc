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

std::atomic<uint64_t> requested_ns{0};  // 0: not yet
static_assert(decltype(requested_ns)::is_always_lock_free, "a signal handler may hold no lock");

void on_signal(int number) {
  const uint64_t now = steady_now_ns();
  uint64_t first = 0;
  if (requested_ns.compare_exchange_strong(first, now) || now < first + rendezvous::kSameRequestNs)
    return;
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

}  // namespace

ProgressLine::ProgressLine(const Heartbeat* heartbeat, bool wanted)
    : heartbeat_(heartbeat),
      wanted_(wanted),
      terminal_(isatty(STDERR_FILENO) == 1),
      last_output_ns_(steady_now_ns()) {}

void ProgressLine::set_total(size_t rows, double duration_s) {
  const std::lock_guard lock(mutex_);
  total_ = rows;
  seconds_ = static_cast<double>(rows) * duration_s;
  began_ns_ = steady_now_ns();
}

std::string ProgressLine::text(uint64_t now) const {
  if (began_ns_ == 0) return heartbeat_->where();
  char all[32] = "", text[96];
  if (seconds_ > 0) snprintf(all, sizeof all, " of %.0f s", seconds_);
  snprintf(text, sizeof text,
           "%.0f s%s, row %zu of %zu: ", static_cast<double>(now - began_ns_) / 1e9, all, rows_ + 1,
           total_);
  return text + heartbeat_->where();
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
  const uint64_t now = steady_now_ns();
  if (!wanted_) return;
  answer_end_request();
  if (now < last_output_ns_ + (terminal_ ? kQuietTerminal : kQuietLog)) return;
  fprintf(stderr, "%sslime-perf: %s%s", terminal_ ? "\r\033[K" : "", text(now).c_str(),
          terminal_ ? "" : "\n");
  fflush(stderr);
  shown_ = terminal_;
  if (!terminal_) last_output_ns_ = now;
}

void ProgressLine::before_row() {
  const std::lock_guard lock(mutex_);
  erase();
  if (wanted_) answer_end_request();
}

void ProgressLine::after_row() {
  const std::lock_guard lock(mutex_);
  ++rows_;
  last_output_ns_ = steady_now_ns();
}

void ProgressLine::erase() {
  if (shown_) fputs("\r\033[K", stderr);
  shown_ = false;
}

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
