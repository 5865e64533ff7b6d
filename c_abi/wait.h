// Calls of include/slime/slime.h that wait.
#pragma once

#include <chrono>
#include <thread>

#include "c_abi/boundary.h"

namespace slime::api {

inline constexpr uint64_t kPauseNs = 100'000;
// Asks until it is so, or the time is over.
template <typename Condition>
bool in_time(uint64_t limit_ns, Condition is_so) {
  const uint64_t begin_ns = steady_now_ns();
  while (!is_so()) {
    if (steady_now_ns() - begin_ns >= limit_ns) return is_so();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kPauseNs));
  }
  return true;
}

}  // namespace slime::api
