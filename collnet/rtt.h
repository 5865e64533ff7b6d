// How long to wait for a result before asking again (RFC 6298): smoothed round trip plus four times
// its deviation, from rounds that were sent once (Karn).
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime {

class RoundTrip {
 public:
  struct Limits {
    uint64_t initial_ns = 5'000'000;
    uint64_t min_ns = 1'000'000;
    uint64_t max_ns = 200'000'000;
  };
  explicit RoundTrip(const Limits& limits) : limits_(limits) {}

  void measured(uint64_t ns) {
    if (smoothed_ns_ == 0) {
      smoothed_ns_ = ns;
      deviation_ns_ = ns / 2;
      return;
    }
    const uint64_t off = ns > smoothed_ns_ ? ns - smoothed_ns_ : smoothed_ns_ - ns;
    deviation_ns_ += off / 4 - deviation_ns_ / 4;
    smoothed_ns_ += ns / 8 - smoothed_ns_ / 8;
  }

  // Doubled per attempt, capped.
  uint64_t timeout_ns(uint32_t attempts) const {
    const uint64_t base = smoothed_ns_ == 0 ? limits_.initial_ns : smoothed_ns_ + 4 * deviation_ns_;
    const uint64_t first = std::clamp(base, limits_.min_ns, limits_.max_ns);
    return std::min(first << std::min(attempts, 16u), limits_.max_ns);
  }
  uint64_t smoothed_ns() const { return smoothed_ns_; }

 private:
  const Limits limits_;
  uint64_t smoothed_ns_ = 0;
  uint64_t deviation_ns_ = 0;
};

}  // namespace slime
