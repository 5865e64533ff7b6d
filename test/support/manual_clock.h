// Time that passes when the test says so.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace slime::test {

// Thread rules: any thread.
class ManualClock final : public Clock {
 public:
  uint64_t now_ns() const override { return now_ns_.load(std::memory_order_relaxed); }
  void pass(uint64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> now_ns_{1'000'000'000'000};
};

}  // namespace slime::test
