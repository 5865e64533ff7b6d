// Repeated measurements of one thing on a machine that others use too. The best is what the code
// can do; median and worst say how much the machine disturbed it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace slime::bench {

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  void add(const Samples& more) {
    values_.insert(values_.end(), more.values_.begin(), more.values_.end());
  }
  size_t count() const { return values_.size(); }
  double min() const { return quantile(0); }
  double median() const { return quantile(0.5); }
  double max() const { return quantile(1); }

  // 0 for no samples.
  double quantile(double share) const {
    if (values_.empty()) return 0;
    std::vector<double> sorted = values_;
    const auto place =
        static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)));
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(place),
                     sorted.end());
    return sorted[place];
  }

 private:
  std::vector<double> values_;
};

inline nlohmann::json to_json(const Samples& samples) {
  return {{"min", samples.min()},
          {"median", samples.median()},
          {"max", samples.max()},
          {"samples", samples.count()}};
}

}  // namespace slime::bench
