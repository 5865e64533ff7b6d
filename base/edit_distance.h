// How far what somebody wrote is from a word that is known: for "the nearest is ...".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace slime {

// Levenshtein's distance, one row at a time. Letters too many cost half of letters that are missing
// or wrong: who writes RAILS_PER_INTERFACE means RAILS_PER_IF, not RAILS_PER_DEVICE.
inline size_t edit_distance(std::string_view written, std::string_view known) {
  std::vector<size_t> row(known.size() + 1);
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
