// When to look again at a peer that is being set up or leaves, or at handshakes: after an eighth of
// the time since that began, within bounds. Most take a few round trips, and few take seconds.
//
// States: runs, from next_ns() until end(), or not. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime {

class StepPace {
 public:
  static constexpr uint64_t kShortestNs = 20'000, kLongestNs = 500'000;

  uint64_t next_ns(uint64_t now_ns) {
    if (!runs()) since_ns_ = now_ns;
    return now_ns + std::clamp((now_ns - since_ns_) / 8, kShortestNs, kLongestNs);
  }
  void end() { since_ns_ = 0; }
  bool runs() const { return since_ns_ != 0; }

 private:
  uint64_t since_ns_ = 0;
};

}  // namespace slime
