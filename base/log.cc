// NCCL's logger prints prefix and text through one buffer of 1024 bytes (src/debug.cc,
// ncclDebugLog) and cuts longer lines without notice. Our lines stay well below that, and show
// where they were cut.

#include "base/log.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace slime::log {
namespace {

constexpr size_t kLineBytes = 896;  // leaves 128 for "host:pid:tid [device] NCCL INFO "
constexpr char kCutMark[] = " [cut]";

std::atomic<Sink> g_sink{nullptr};

// One line stays one line whatever a string contains.
void make_printable(char* text) {
  size_t length = strlen(text);
  while (length > 0 && text[length - 1] == '\n') text[--length] = '\0';
  blank_controls({text, length});
}

}  // namespace

void set_sink(Sink sink) { g_sink.store(sink, std::memory_order_release); }

bool enabled() { return g_sink.load(std::memory_order_relaxed) != nullptr; }

void write(Level level, const char* file, int line, const char* format, ...) {
  const Sink sink = g_sink.load(std::memory_order_acquire);
  if (sink == nullptr) return;
  const int saved_errno = errno;  // logging between a failed call and its errno must not lose it
  char text[kLineBytes];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length >= 0) {
    if (static_cast<size_t>(length) >= sizeof text) {
      memcpy(text + sizeof text - sizeof kCutMark, kCutMark, sizeof kCutMark);
    }
    make_printable(text);
    sink(level, file, line, text);
  }
  errno = saved_errno;
}

}  // namespace slime::log
