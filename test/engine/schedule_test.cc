// A million random lives of a link. A violation prints its seed, and the seed replays it:
//   SLIME_SEED=n build/test/engine --gtest_filter=Schedules.*
#include "test/engine/schedule.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace slime::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

TEST(Schedules, HoldWhateverTheRailsDo) {
  const uint64_t seed = from_environment("SLIME_SEED", 0);
  const uint64_t first = seed ? seed : 1;
  const uint64_t count = seed ? 1 : from_environment("SLIME_SCHEDULES", 1'000'000);
  ScheduleWorld world;
  uint64_t violations = 0, failed = 0, with_death = 0, messages = 0, retries = 0, eager = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const ScheduleReport report = world.run(first + i);
    failed += report.failed;
    with_death += report.deaths > 0;
    messages += report.messages;
    retries += report.retries;
    eager += report.eager;
    if (report.violation.empty()) continue;
    ADD_FAILURE() << "seed " << first + i << ": " << report.violation << " (" << report.rails
                  << " rails, " << report.deaths << " made to die)";
    if (++violations == 10) break;
  }
  std::printf(
      "%llu schedules, %llu messages (%llu small enough for eager), %llu with dying rails, "
      "%llu works repeated on another rail, %llu links lost with their last rail, "
      "%llu violations\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(messages),
      static_cast<unsigned long long>(eager), static_cast<unsigned long long>(with_death),
      static_cast<unsigned long long>(retries), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(violations));
  EXPECT_EQ(violations, 0u);
  if (count >= 10'000) {  // the schedules did meet what they are meant to meet
    EXPECT_GT(retries, count / 100);
    EXPECT_GT(failed, 0u);
  }
}

}  // namespace
}  // namespace slime::test
