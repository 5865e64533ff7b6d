// How a thread waits that has nothing else to do: hot while results come, then ever cooler.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/clock.h"

namespace slime::aggregation {

class Pause {
 public:
  // `results`: of the worker, so far.
  void rest(uint64_t results, uint64_t now_ns) {
    if (results != results_ || since_ns_ == 0) {
      results_ = results;
      since_ns_ = now_ns;
    }
    if (now_ns - since_ns_ < kHotNs) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(kSleepUs));
    }
  }

 private:
  static constexpr uint64_t kHotNs = 10'000'000;  // longer than most rounds take, losses included
  static constexpr int kSleepUs = 100;

  uint64_t results_ = 0;
  uint64_t since_ns_ = 0;
};

}  // namespace slime::aggregation
