// Text that is one number and nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace slime {

template <typename Number>
std::optional<Number> parse_whole(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace slime
