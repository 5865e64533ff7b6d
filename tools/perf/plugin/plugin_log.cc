// The logger that NCCL gives to a plugin (src/debug.cc), to stderr.
#include <strings.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/text.h"
#include "tools/perf/plugin/plugin.h"

namespace slime::perf {
namespace {

std::mutex log_mutex;
std::string last_warning_text;
std::string why_no_devices_text;
int log_rank = 0;

// The level that NCCL_DEBUG names. NCCL shows no warnings if it is unset; slime-perf shows them,
// because it has no other log.
nccl::LogLevel shown_level() {
  static constexpr std::pair<const char*, nccl::LogLevel> kLevels[] = {
      {"NONE", nccl::kLogNone},
      {"VERSION", nccl::kLogVersion},
      {"INFO", nccl::kLogInfo},
      {"TRACE", nccl::kLogTrace}};
  static const nccl::LogLevel shown = [] {
    const char* const value = std::getenv("NCCL_DEBUG");
    for (const auto& [name, level] : kLevels) {
      if (value != nullptr && strcasecmp(value, name) == 0) return level;
    }
    return nccl::kLogWarn;
  }();
  return shown;
}

}  // namespace

void plugin_log(nccl::LogLevel level, unsigned long, const char* file, int line, const char* format,
                ...) {
  const nccl::LogLevel shown = shown_level();
  char text[1024];  // NCCL's limit
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  blank_controls({text, strlen(text)});
  const std::lock_guard lock(log_mutex);
  if (level == nccl::kLogWarn) last_warning_text = text;
  // Our plugin logs this as information only, because NCCL has other transports then.
  if (strstr(text, "no devices:") != nullptr) why_no_devices_text = text;
  if (level > shown || (shown <= nccl::kLogWarn && is_consequence(text))) return;
  if (level == nccl::kLogWarn) {
    fprintf(stderr, "[rank %d:%d] %s:%d NCCL WARN %s\n", log_rank, getpid(),
            file != nullptr ? file : "?", line, text);
  } else {
    fprintf(stderr, "[rank %d:%d] NCCL %s %s\n", log_rank, getpid(),
            level == nccl::kLogTrace ? "TRACE" : "INFO", text);
  }
}

void set_log_rank(int rank) {
  const std::lock_guard lock(log_mutex);
  log_rank = rank;
}

bool warnings_are_shown() { return shown_level() >= nccl::kLogWarn; }

std::string last_warning() {
  const std::lock_guard lock(log_mutex);
  return last_warning_text;
}

std::string why_no_devices() {
  const std::lock_guard lock(log_mutex);
  return why_no_devices_text.empty() ? last_warning_text : why_no_devices_text;
}

}  // namespace slime::perf
