// What slime-perf keeps of many operations' times: few, evenly spread, the same at every rank.
#include <gtest/gtest.h>

#include "tools/perf/report/figures.h"

namespace slime::perf {
namespace {

std::vector<uint64_t> kept_of(uint64_t operations) {
  Samples samples;
  for (uint64_t i = 0; i < operations; ++i) samples.add(i);
  return samples.times_ns();
}

TEST(PerfSamples, KeepAllOfFew) {
  EXPECT_TRUE(kept_of(0).empty());
  const auto kept = kept_of(Samples::kMost);
  ASSERT_EQ(kept.size(), Samples::kMost);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], i);
}

TEST(PerfSamples, AreEvenlySpreadOverMany) {
  for (const uint64_t operations : {1001u, 1999u, 2000u, 2001u, 2002u, 123457u, 1000000u}) {
    const auto kept = kept_of(operations);
    ASSERT_GE(kept.size(), Samples::kMost / 2) << operations;
    ASSERT_LE(kept.size(), Samples::kMost) << operations;
    const uint64_t step = kept[1] - kept[0];
    for (size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i], i * step) << operations;
    EXPECT_LT(operations - 1 - kept.back(), step) << operations << ": up to the last";
  }
}

}  // namespace
}  // namespace slime::perf
