// A counter with a single writer, the thread that owns what is counted, and any readers.
#pragma once

#include <atomic>
#include <cstdint>

namespace slime {

// A relaxed load and store instead of a locked add: one writer, so nothing is lost.
class Counter {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void raise_to(uint64_t n) {
    if (n > get()) value_.store(n, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace slime
