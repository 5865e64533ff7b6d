// Peers that have come by themselves, until the program accepts them.
//
// Memory: a handle for each. Threads: any; a mutex guards all.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "peer/ready_fd.h"

namespace slime {

class Arrivals {
 public:
  explicit Arrivals(ReadyFd& ready) : ready_(ready) {}

  void put(uint64_t peer) {
    {
      const std::lock_guard lock(mutex_);
      here_.push_back(peer);
      ready_.set(ReadyFd::kPeers);
    }
    changed_.notify_one();
  }
  // It is known to the program now, or to nobody any more.
  void drop(uint64_t peer) {
    const std::lock_guard lock(mutex_);
    std::erase(here_, peer);
    if (here_.empty()) ready_.clear(ReadyFd::kPeers);
  }
  // 0: none comes until then.
  uint64_t next(std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, end, [this] { return !here_.empty(); })) return 0;
    const uint64_t peer = here_.front();
    here_.pop_front();
    if (here_.empty()) ready_.clear(ReadyFd::kPeers);
    return peer;
  }

 private:
  ReadyFd& ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<uint64_t> here_;  // the first to come first
};

}  // namespace slime
