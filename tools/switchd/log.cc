// The daemon's log on standard error: a line with a time stamp for each message, at most
// kLinesPerSecond.
#include <cstdio>
#include <ctime>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "tools/switchd/daemon.h"

namespace slime::switchd {
namespace {

constexpr int kLinesPerSecond = 50;
constexpr uint64_t kSecondNs = 1'000'000'000;

// "2026-11-22T04:40:16.123Z": logs of several hosts are read side by side.
struct Stamp {
  char text[32];
};

Stamp stamp() {
  timespec now{};
  tm parts{};
  Stamp result{};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)gmtime_r(&now.tv_sec, &parts);
  const size_t length = strftime(result.text, sizeof result.text, "%Y-%m-%dT%H:%M:%S", &parts);
  (void)snprintf(result.text + length, sizeof result.text - length, ".%03ldZ",
                 now.tv_nsec / 1'000'000);
  return result;
}

struct Window {
  std::mutex mutex;  // shards log too
  uint64_t since_ns = 0;
  int lines = 0;
};

// Writes the line, or leaves it out and counts it. The first line of the next second says how many
// were left out.
void write_line(log::Level level, const char* /*file*/, int /*line*/, const char* text) {
  static Window window;
  if (level == log::Level::kTrace) return;
  const std::lock_guard lock(window.mutex);
  const uint64_t now = steady_now_ns();
  if (now - window.since_ns >= kSecondNs) {
    const int left_out = window.lines - kLinesPerSecond;
    if (left_out > 0) {
      fprintf(stderr, "%s slime-switchd: %d more lines left out\n", stamp().text, left_out);
    }
    window.since_ns = now;
    window.lines = 0;
  }
  if (++window.lines > kLinesPerSecond) return;
  fprintf(stderr, "%s slime-switchd: %s%s\n", stamp().text,
          level == log::Level::kWarn ? "warning: " : "", text);
}

}  // namespace

void log_to_stderr() { log::set_sink(write_line); }

}  // namespace slime::switchd
