// Logging through one sink. In the plugin the sink is NCCL's logger. Before a sink is set, nothing
// is logged.
#pragma once

#include <cstdint>

namespace slime::log {

enum class Level : uint8_t { kWarn, kInfo, kTrace };

// The sink gets a finished line without a newline. `file` is valid until the process ends. Any
// thread may call.
using Sink = void (*)(Level level, const char* file, int line, const char* text);

void set_sink(Sink sink);  // nullptr: nothing is logged
bool enabled();

[[gnu::format(printf, 4, 5)]] void write(Level level, const char* file, int line,
                                         const char* format, ...);

}  // namespace slime::log

#define SLIME_WARN(...) \
  ::slime::log::write(::slime::log::Level::kWarn, __FILE__, __LINE__, __VA_ARGS__)
#define SLIME_INFO(...) \
  ::slime::log::write(::slime::log::Level::kInfo, __FILE__, __LINE__, __VA_ARGS__)
#define SLIME_TRACE(...) \
  ::slime::log::write(::slime::log::Level::kTrace, __FILE__, __LINE__, __VA_ARGS__)
