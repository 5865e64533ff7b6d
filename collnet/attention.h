// How long somebody has been looking.
//
// A silence counts only while one asks and listens. Who was stopped for a while, by a debugger, a
// paused machine or a busy one, has heard nothing and knows nothing: of a gap between two looks a
// small part counts, so that it takes several looks after it to call anybody silent.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime {

class Attention {
 public:
  explicit Attention(uint64_t most_per_gap_ns) : most_ns_(most_per_gap_ns) {}

  void look(uint64_t now_ns) {
    if (now_ns <= looked_ns_) return;
    attended_ns_ += std::min(now_ns - looked_ns_, most_ns_);
    looked_ns_ = now_ns;
  }
  // Time as it counts for silence. To be compared with itself only.
  uint64_t ns() const { return attended_ns_; }

 private:
  uint64_t most_ns_;
  uint64_t looked_ns_ = 0;
  uint64_t attended_ns_ = 0;
};

}  // namespace slime
