// What a rank tells of itself once a second: that it moves, and what it is doing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace slime::rendezvous {

// Threads: any.
class Heartbeat {
 public:
  // Anything that shows that the rank moves: messages, blocks of a check. A lost count is harmless,
  // so this is no locked instruction.
  void beat() { count_.store(count() + 1, std::memory_order_relaxed); }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // What the rank is doing, for messages to people.
  void enter(std::string what) {
    beat();
    const std::lock_guard lock(mutex_);
    where_ = std::move(what);
  }
  std::string where() const {
    const std::lock_guard lock(mutex_);
    return where_;
  }

 private:
  std::atomic<uint64_t> count_{0};
  mutable std::mutex mutex_;
  std::string where_ = "starting";
};
using Pulse = Heartbeat;  // as slime-perf says

}  // namespace slime::rendezvous
