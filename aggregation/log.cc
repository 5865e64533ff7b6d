#include "aggregation/context_impl.h"

#include <slime/aggregation.h>

#include <atomic>
#include <cstdio>

#include "base/log.h"

namespace slime::aggregation {
namespace {

std::atomic<LogSink> g_sink{nullptr};
std::atomic<bool> g_chosen{false};

LogLevel level_of(log::Level level) {
  switch (level) {
    case log::Level::kWarn:
      return LogLevel::kWarning;
    case log::Level::kInfo:
      return LogLevel::kInfo;
    case log::Level::kTrace:
      return LogLevel::kTrace;
  }
  return LogLevel::kTrace;
}

void pass_on(log::Level level, const char* /*file*/, int /*line*/, const char* text) {
  if (const LogSink sink = g_sink.load()) sink(level_of(level), text);
}

void to_stderr(LogLevel level, const char* line) {
  if (level == LogLevel::kWarning) std::fprintf(stderr, "slime: %s\n", line);
}

}  // namespace

void ensure_log() {
  if (!g_chosen.exchange(true)) {
    g_sink.store(to_stderr);
    log::set_sink(pass_on);
  }
}

void set_log(LogSink sink) {
  g_chosen.store(true);
  g_sink.store(sink);
  log::set_sink(sink == nullptr ? nullptr : pass_on);
}

}  // namespace slime::aggregation
