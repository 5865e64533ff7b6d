// The seeded source of every choice the simulated network makes: same seed, same run.
#pragma once

#include <cstdint>

namespace slime::sim {

// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014): one
// word of state, so that starting a schedule costs nothing.
class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, bound]; the tiny bias of the modulo does not matter here.
  uint64_t up_to(uint64_t bound) { return bound == UINT64_MAX ? next() : next() % (bound + 1); }
  // No draw where there is no choice: a model without faults stays as fast as it can be.
  bool chance(uint32_t per_million) { return per_million != 0 && next() % 1'000'000 < per_million; }
  bool coin() { return (next() & 1) != 0; }

 private:
  uint64_t state_;
};

}  // namespace slime::sim
