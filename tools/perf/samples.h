// Times of operations, of a bounded number of them: evenly spread over however many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slime::perf {

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

}  // namespace slime::perf
