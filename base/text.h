// Text that comes from outside or is written for a person: its numbers, and its control characters,
// which must not reach a terminal or a log.
//
// Threads: any.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slime {

// A byte that could end a line or begin an escape sequence of a terminal.
constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// Without the blanks and tabs around it.
std::string_view trimmed(std::string_view text);

// Letters, digits, '-', '_' and '.', at least one of them.
bool is_plain_name(std::string_view text);

// Whether line ends stay.
enum class Lines : bool { kOne, kMany };

// Overwrites with spaces what could change how the rest is shown: control characters (ASCII's, and
// those of Unicode for lines, terminals and the direction of writing) and what is no UTF-8. Other
// UTF-8 stays. Allocates nothing.
void blank_controls(std::span<char> text, Lines lines = Lines::kOne);

// The form in which text from outside goes into a message: from a peer, an agent, a switch, a
// library, a file or the environment. Without controls, and at most `most` bytes of it. Errors
// (base/error.h) and lines of the log (base/log.h) are cleaned as they are made; what a program
// prints otherwise goes through here.
inline constexpr size_t kMostShown = 1024;
std::string displayed(std::string_view text, size_t most = kMostShown, Lines lines = Lines::kOne);

// `text` with '?' in place of each byte that is no printable ASCII.
std::string printable(std::string_view text);

// The first `most` bytes of `text`, and "..." if there are more.
std::string excerpt(std::string_view text, size_t most);

// `text` if it is one number and nothing else.
template <typename Number>
std::optional<Number> parse_whole(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// The distance of a written word from a known one, to suggest the nearest one. It is Levenshtein's
// distance with weights: a surplus letter costs half of a missing or wrong one. So
// RAILS_PER_INTERFACE is nearest to RAILS_PER_IF, not to RAILS_PER_DEVICE.
size_t edit_distance(std::string_view written, std::string_view known);

}  // namespace slime
