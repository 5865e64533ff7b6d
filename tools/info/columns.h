// Rows of text in columns as wide as they need to be. A row of one word is a heading: no column is
// as wide as that.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace slime::info {

class Columns {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  void print(const char* indent, FILE* out) const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      if (row.size() == 1) continue;
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      std::string line = indent;
      for (size_t i = 0; i < row.size(); ++i) {
        line += row[i];
        if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      fprintf(out, "%s\n", line.c_str());
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace slime::info
