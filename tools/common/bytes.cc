#include "tools/common/bytes.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace slime::tools {
namespace {

// "", "K", "KB", "KiB" ... in either case; 0: no such unit.
double unit_factor(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 1;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "B" && rest != "b" && rest != "iB" && rest != "ib") return 0;
  const size_t power = std::string_view("KMGT").find(static_cast<char>(unit[0] & ~0x20));
  return power == std::string_view::npos ? 0 : static_cast<double>(uint64_t{1024} << 10 * power);
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = text.substr(static_cast<size_t>(end - text.data()));
  const double bytes = number * unit_factor(unit);
  if (error != std::errc() || !(number >= 0) || unit_factor(unit) == 0 || bytes >= 9e18) {
    return fail(make_error(Status::kConfig, 0,
                           "'%.*s' is no size; write a number and K, M or G, as in 64K",
                           static_cast<int>(text.size()), text.data()));
  }
  return static_cast<uint64_t>(std::llround(bytes));
}

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  const bool whole = value == std::floor(value);
  snprintf(text, sizeof text, whole ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

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
    const auto value = parse_whole<uint8_t>(std::string_view(text).substr(2 * i, 2), 16);
    if (!value) return false;
    bytes[i] = static_cast<std::byte>(*value);
  }
  return true;
}

}  // namespace slime::tools
