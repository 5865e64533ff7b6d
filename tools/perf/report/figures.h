// The figures of a half of a row: those of one rank, and those of all ranks together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tools/perf/words.h"

namespace slime::perf {

// Times of operations, of a bounded number of them: evenly spread over however many there are.
class Samples {
 public:
  static constexpr size_t kMost = 1000;

  // Which operations are kept depends on their number alone, so ranks keep the same ones.
  void add(uint64_t time_ns) {
    if (seen_++ % every_ != 0) return;
    if (times_ns_.size() == kMost) thin_out();
    times_ns_.push_back(time_ns);
  }
  const std::vector<uint64_t>& times_ns() const { return times_ns_; }

 private:
  // Keeps every second one, from here on too; the next one is one of them.
  static_assert(kMost % 2 == 0);
  void thin_out() {
    for (size_t i = 0; i < kMost / 2; ++i) times_ns_[i] = times_ns_[2 * i];
    times_ns_.resize(kMost / 2);
    every_ *= 2;
  }

  std::vector<uint64_t> times_ns_;
  uint64_t seen_ = 0, every_ = 1;
};

// What this rank has measured and checked of a half.
struct Tally {
  uint64_t timed_ns = 0, operations = 0;
  uint64_t longest_ns = 0;    // operation
  uint64_t operation_ns = 0;  // of late, warm-ups included; 0: not known yet
  Samples samples;
  uint64_t checked = 0, wrong = 0;  // operations, elements

  double mean_us() const {
    return static_cast<double>(timed_ns) / 1e3 /
           static_cast<double>(std::max<uint64_t>(1, operations));
  }
};

// The figures of all ranks, as the half of a row (report.h). Times are means over the ranks, or of
// the slowest; the fastest operation, the median and so on are of operations that each count as
// long as their slowest rank took. "wrong" counts elements over all ranks, and is null where
// nothing was checked. `bytes` are those that algbw counts.
Result<nlohmann::json> gather(Member* member, const Tally& tally, double bytes, double bus_factor);

}  // namespace slime::perf
