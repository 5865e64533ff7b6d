// How much of a seeded test is run, and from which seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace slime::test {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

// How many random cases a test runs: `wanted`, or as many as fit into a fixed time on a slow or
// busy machine, which is shorter with a sanitizer, but never fewer than a hundredth. A test whose
// hundredth takes longer than its limit fails. A number that the user sets in the environment, or a
// seed to replay, holds whatever the time. Threads: any may ask; it does not change.
class Effort {
 public:
  Effort(const char* variable, uint64_t wanted)
      : wanted_(from_environment(variable, wanted)),
        least_(std::getenv(variable) || wanted == 1 ? wanted_ : wanted_ / 100) {}

  bool goes_on(uint64_t done) const {
    return done < least_ || (done < wanted_ && Clock::now() < end_);
  }

 private:
  using Clock = std::chrono::steady_clock;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr std::chrono::seconds kMost{20};
#else
  static constexpr std::chrono::seconds kMost{60};
#endif

  uint64_t wanted_, least_;
  Clock::time_point end_ = Clock::now() + kMost;
};

}  // namespace slime::test
