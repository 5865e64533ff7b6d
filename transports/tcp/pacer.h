// When to offer a full socket more: not at every poll, for each try that moves nothing costs a
// system call, and not so late that the socket runs empty.
//
// The pause follows what a flush moves: it doubles while that is little of the most that a flush
// ever moved (about the socket's buffer), and halves when it is much of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace slime::tcp {

class Pacer {
 public:
  static constexpr uint64_t kShortestNs = 5'000;
  static constexpr uint64_t kLongestNs = 80'000;  // 100 Gb/s empty 1 MB in that time

  bool due(uint64_t now_ns) const { return now_ns >= next_ns_; }

  void flushed(uint64_t now_ns, size_t moved, bool blocked) {
    if (!blocked) {
      pause_ns_ = kShortestNs;
      return;
    }
    largest_ = std::max(largest_, moved);
    if (moved < largest_ / 8) pause_ns_ = std::min(pause_ns_ * 2, kLongestNs);
    if (moved > largest_ / 2) pause_ns_ = std::max(pause_ns_ / 2, kShortestNs);
    next_ns_ = now_ns + pause_ns_;
  }

 private:
  uint64_t pause_ns_ = kShortestNs;
  uint64_t next_ns_ = 0;
  size_t largest_ = 0;
};

}  // namespace slime::tcp
