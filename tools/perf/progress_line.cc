#include "tools/perf/progress_line.h"

#include <slime/clock.h>
#include <unistd.h>

#include <cstdio>

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

void ProgressLine::set_total(size_t rows) {
  const std::lock_guard lock(mutex_);
  total_ = rows;
}

void ProgressLine::tick() {
  const std::lock_guard lock(mutex_);
  if (!wanted_ || now_ns() < last_output_ns_ + (terminal_ ? kQuietTerminal : kQuietLog)) return;
  if (terminal_) {
    fprintf(stderr, "\r\033[Kslime-perf: row %zu of %zu: %s", rows_ + 1, total_,
            pulse_->where().c_str());
    fflush(stderr);
    shown_ = true;
    return;
  }
  fprintf(stderr, "slime-perf: row %zu of %zu: %s\n", rows_ + 1, total_, pulse_->where().c_str());
  last_output_ns_ = now_ns();
}

void ProgressLine::before_row() {
  const std::lock_guard lock(mutex_);
  erase();
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

}  // namespace slime::perf
