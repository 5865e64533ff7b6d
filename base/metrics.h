// A counter that one thread writes, the owner of the counted object, and any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace slime {

// A relaxed load and store is enough, without a locked add, because there is only one writer.
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
