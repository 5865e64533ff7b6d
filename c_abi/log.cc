// The log of include/slime/slime.h: one for the process, as rails and their threads belong to no
// engine alone.
//
// Threads: any. mutex_ is shared by those that log, so that a callback that was replaced is not
// called any more.
#include <mutex>
#include <shared_mutex>

#include "base/log.h"
#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

struct Log {
  std::shared_mutex mutex;
  slime_log_callback callback = nullptr;
  void* user = nullptr;
  int level = SLIME_LOG_WARN;
};

// It lives as long as threads that log may.
Log& the_log() {
  static Log* const log = new Log;
  return *log;
}

void pass_on(log::Level level, const char* /*file*/, int /*line*/, const char* text) {
  Log& log = the_log();
  const std::shared_lock lock(log.mutex);
  const int as_number = static_cast<int>(level);
  if (log.callback == nullptr || as_number > log.level) return;
  log.callback(log.user, as_number, with_option_names(text).c_str());
}

static_assert(static_cast<int>(log::Level::kWarn) == SLIME_LOG_WARN);
static_assert(static_cast<int>(log::Level::kInfo) == SLIME_LOG_INFO);
static_assert(static_cast<int>(log::Level::kTrace) == SLIME_LOG_TRACE);

}  // namespace

extern "C" int slime_set_log(slime_log_callback callback, void* user, int level) {
  return guarded([&] {
    if (level < SLIME_LOG_WARN || level > SLIME_LOG_TRACE) {
      return invalid(
          "slime_set_log: level is not SLIME_LOG_WARN, SLIME_LOG_INFO or SLIME_LOG_TRACE");
    }
    Log& log = the_log();
    const std::lock_guard lock(log.mutex);
    log.callback = callback;
    log.user = user;
    log.level = level;
    log::set_sink(callback != nullptr ? pass_on : nullptr);
    return static_cast<int>(SLIME_OK);
  });
}
