// Numbers that the simulated ranks add up, and what their sums must be.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "test/collnet/simulation/simulated_job.h"

namespace slime::test {

inline int32_t any_int(std::mt19937_64& random) { return static_cast<int32_t>(random()); }

inline void expect_exact_sum(Job& job, size_t count) {
  auto buffers = job.inputs<int32_t>(count, any_int);
  std::vector<int32_t> want(count);
  for (const auto& one : buffers) {
    for (size_t i = 0; i < count; ++i) {
      want[i] =
          static_cast<int32_t>(static_cast<uint32_t>(want[i]) + static_cast<uint32_t>(one[i]));
    }
  }
  ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kInt32));
  for (const auto& one : buffers) ASSERT_EQ(one, want);
}

// Log-uniform, so that neighbours differ by many powers of two.
inline float any_float(std::mt19937_64& random) {
  const double exponent = static_cast<double>(random() % 2000) / 100 - 10;
  return static_cast<float>((random() & 1 ? -1 : 1) * std::exp2(exponent));
}

inline void expect_close_and_equal(const std::vector<std::vector<float>>& inputs,
                                   const std::vector<std::vector<float>>& results, uint32_t lanes) {
  const size_t count = inputs[0].size();
  if (count == 0) return;
  for (const auto& one : results) {
    ASSERT_EQ(std::memcmp(one.data(), results[0].data(), count * sizeof(float)), 0);
  }
  const double workers = static_cast<double>(inputs.size());
  for (size_t i = 0; i < count; ++i) {
    double sum = 0, largest = 0;
    const size_t first = i / lanes * lanes;  // the whole packet: at least the block
    for (const auto& one : inputs) {
      sum += one[i];
      for (size_t j = first; j < std::min(count, first + lanes); ++j) {
        if (std::isfinite(one[j])) largest = std::max(largest, std::fabs(double{one[j]}));
      }
    }
    if (!std::isfinite(sum)) {
      ASSERT_EQ(std::isnan(results[0][i]), std::isnan(sum)) << i;
      if (!std::isnan(sum)) {
        ASSERT_EQ(results[0][i], sum) << i;
      }
      continue;
    }
    const double bound =
        workers * workers * 2 * std::ldexp(2 * largest, -32) + std::fabs(sum) * std::ldexp(1, -24);
    ASSERT_NEAR(results[0][i], sum, bound) << i;
  }
}

}  // namespace slime::test
