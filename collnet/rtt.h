// How long to wait for a result before asking again (RFC 6298): smoothed round trip plus four times
// its deviation, from rounds that were sent once (Karn). What a time-out has doubled stays doubled
// until such a round has been measured (section 5, note after 5.7): otherwise, once round trips
// have become longer than the time-out, every round would be sent twice and none ever measured.
//
// On a full link round trips hardly differ, and four times next to nothing is no margin: a worker
// that the scheduler holds up for a moment would send a whole window again. So the margin is a
// round trip at least.
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
    backoff_ = 0;
    if (smoothed_ns_ == 0) {
      smoothed_ns_ = ns;
      deviation_ns_ = ns / 2;
      return;
    }
    const uint64_t off = ns > smoothed_ns_ ? ns - smoothed_ns_ : smoothed_ns_ - ns;
    deviation_ns_ += off / 4 - deviation_ns_ / 4;
    smoothed_ns_ += ns / 8 - smoothed_ns_ / 8;
  }

  // Of many slots that time out at once, as after a pause of this thread, one counts.
  void timed_out(uint64_t now_ns) {
    if (now_ns < doubled_until_ns_) return;
    backoff_ = std::min(backoff_ + 1, kMostDoublings);
    doubled_until_ns_ = now_ns + timeout_ns(0);
  }

  // Doubled per attempt, capped.
  uint64_t timeout_ns(uint32_t attempts) const {
    const uint64_t margin = std::max(4 * deviation_ns_, smoothed_ns_);
    const uint64_t base = smoothed_ns_ == 0 ? limits_.initial_ns : smoothed_ns_ + margin;
    const uint64_t first = std::clamp(base, limits_.min_ns, limits_.max_ns);
    const uint32_t doublings = std::min(std::max(attempts, backoff_), kMostDoublings);
    return std::min(first << doublings, limits_.max_ns);
  }
  uint64_t smoothed_ns() const { return smoothed_ns_; }

 private:
  static constexpr uint32_t kMostDoublings = 16;

  const Limits limits_;
  uint32_t backoff_ = 0;
  uint64_t doubled_until_ns_ = 0;
  uint64_t smoothed_ns_ = 0;
  uint64_t deviation_ns_ = 0;
};

}  // namespace slime
