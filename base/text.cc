#include "base/text.h"

#include <algorithm>
#include <vector>

namespace slime {

bool is_plain_name(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !text.empty() && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::string without_controls(std::string_view text, char mark) {
  std::string clean(text);
  std::ranges::replace_if(clean, is_control, mark);
  return clean;
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
