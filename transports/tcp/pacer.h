// Says when to send again after the socket's buffer was full. Each try that moves nothing costs a
// system call, so there is a pause between tries; the buffer must not run empty in it.
//
// The most that a flush ever moved is about the size of the buffer. The pause doubles when a flush
// moves less than an eighth of that, and halves when it moves more than half.
//
// States: blocked (due() says when to try again) or not. Thread: that of the channel.
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

  void expire() { next_ns_ = 0; }  // the next try is due at once

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
