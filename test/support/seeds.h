// Runs a world of random lives, each from a seed of its own, and names the seeds that fail.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "test/support/environment.h"

namespace slime::test {

// SLIME_SEED: that one alone; SLIME_SCHEDULES: so many, from it on. `run(seed)` returns what was
// wrong; after ten wrong ones no more are run.
template <typename Run>
void run_seeds(uint64_t wanted, Run run) {
  const uint64_t seed = from_environment("SLIME_SEED", 0);
  const Effort effort("SLIME_SCHEDULES", seed ? 1 : wanted);
  size_t violations = 0;
  for (uint64_t i = 0; effort.goes_on(i) && violations < 10; ++i) {
    const uint64_t one = (seed ? seed : 1) + i;
    const std::string violation = run(one);
    if (violation.empty()) continue;
    ADD_FAILURE() << "seed " << one << ": " << violation;
    ++violations;
  }
}

}  // namespace slime::test
