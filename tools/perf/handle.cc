#include "tools/perf/handle.h"

#include <charconv>

namespace slime::perf {

std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

bool from_hex(const std::string& text, std::span<std::byte> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* start = text.data() + 2 * i;
    if (std::from_chars(start, start + 2, value, 16).ptr != start + 2) return false;
    bytes[i] = static_cast<std::byte>(value);
  }
  return true;
}

}  // namespace slime::perf
