// Monotonic time. Code that tests run in virtual time uses a Clock. Threads and sockets, which need
// real time, use steady_now_ns().
#pragma once

#include <chrono>
#include <cstdint>

namespace slime {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t now_ns() const = 0;  // monotonic
};

class SteadyClock final : public Clock {
 public:
  uint64_t now_ns() const override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
  static const SteadyClock& instance() {
    static const SteadyClock clock;
    return clock;
  }
};

inline uint64_t steady_now_ns() { return SteadyClock::instance().now_ns(); }

}  // namespace slime
