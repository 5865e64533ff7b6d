#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace slime {
namespace {

struct Character {
  size_t bytes = 1;
  uint32_t code = 0;  // 0: no UTF-8
};

// RFC 3629: the shortest form only, no surrogates, up to U+10FFFF.
Character first_character(std::span<const char> text) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
  if (byte(0) < 0x80) return {1, byte(0)};
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by length
  const size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || bytes > text.size()) return {};
  uint32_t code = byte(0) & (0x7f >> bytes);
  for (size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(at) & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || is_surrogate || code > 0x10ffff) return {};
  return {bytes, code};
}

// Not: the controls of ASCII and of U+0080 to U+009F, the ends of lines and paragraphs, and what
// changes the direction of writing (Unicode 15, 23.1, 23.2 and UAX #9).
bool is_shown(uint32_t code) {
  const auto in = [code](uint32_t first, uint32_t last) { return code >= first && code <= last; };
  return !in(0, 0x1f) && !in(0x7f, 0x9f) && code != 0x61c && !in(0x200e, 0x200f) &&
         !in(0x2028, 0x202e) && !in(0x2066, 0x2069);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_plain_name(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !text.empty() && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

void blank_controls(std::span<char> text, Lines lines) {
  for (size_t at = 0; at < text.size();) {
    const std::span<char> rest = text.subspan(at);
    const bool is_kept_line = lines == Lines::kMany && rest[0] == '\n';
    const Character character = first_character(rest);
    if (!is_kept_line && !is_shown(character.code)) {
      std::ranges::fill(rest.first(character.bytes), ' ');
    }
    at += character.bytes;
  }
}

std::string displayed(std::string_view text, size_t most, Lines lines) {
  std::string shown = excerpt(text, most);
  blank_controls(shown, lines);
  return shown;
}

std::string printable(std::string_view text) {
  std::string shown(text);
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

std::string excerpt(std::string_view text, size_t most) {
  return std::string(text.substr(0, most)) + (text.size() > most ? "..." : "");
}

size_t edit_distance(std::string_view written, std::string_view known) {
  std::vector<size_t> row(known.size() + 1);  // of the table of distances between prefixes
  for (size_t j = 0; j < row.size(); ++j) row[j] = 2 * j;
  for (size_t i = 1; i <= written.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= known.size(); ++j) {
      const size_t replaced = diagonal + (written[i - 1] == known[j - 1] ? 0 : 2);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 2, replaced});
    }
  }
  return row.back();
}

}  // namespace slime
