// Immediates that nobody expects, on their way to the program's function for them.
//
// Memory: kMost of them; the sender of one more gets an error. Threads: any; a mutex guards all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace slime {

struct UnexpectedImmediate {
  uint64_t peer = 0;
  uint32_t immediate = 0;
};

class UnexpectedImmediates {
 public:
  static constexpr size_t kMost = 65'536;

  bool put(const UnexpectedImmediate& one) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMost) return false;
    waiting_.push_back(one);
    return true;
  }
  std::optional<UnexpectedImmediate> next() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    const UnexpectedImmediate one = waiting_.front();
    waiting_.pop_front();
    return one;
  }

 private:
  std::mutex mutex_;
  std::deque<UnexpectedImmediate> waiting_;  // the oldest first
};

}  // namespace slime
