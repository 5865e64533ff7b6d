#include "link/rail_choice.h"

#include <gtest/gtest.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <random>
#include <vector>

#include "link/rail/rail_rate.h"

namespace slime::test {
namespace {

constexpr uint64_t kStripe = 64 << 10;

// ns per byte 8 is 1 Gbit/s.
RailLoad rail(double ns_per_byte, uint64_t outstanding, uint64_t window = 1 << 20) {
  return {ns_per_byte, 1000, outstanding, window, true};
}

size_t quickest_rail(const std::vector<RailLoad>& rails, uint64_t bytes, size_t preferred) {
  RailLoads loads;
  for (size_t i = 0; i < rails.size(); ++i) {
    loads.add();
    loads.set(i, rails[i]);
  }
  return loads.quickest(bytes, preferred);
}

TEST(RailChoice, ASmallMessageTakesTheRailThatIsDoneFirst) {
  EXPECT_EQ(quickest_rail(std::vector{rail(8, 0), rail(2, 0)}, 4096, 0), 1u);
  EXPECT_EQ(quickest_rail(std::vector{rail(8, 0), rail(2, 100'000)}, 4096, 0), 0u);
  std::vector rails{rail(2, 0), rail(2, 0)};
  rails[0].latency_ns = 100'000;
  EXPECT_EQ(quickest_rail(rails, 8, 0), 1u);
}

TEST(RailChoice, WhatOtherLinksHaveThereCounts) {
  std::vector rails{rail(2, 0), rail(2, 0)};
  rails[0].others = 1 << 20;
  EXPECT_EQ(quickest_rail(rails, 4096, 0), 1u);
  EXPECT_EQ(rail_with_room(rails, kStripe, 4 * kStripe), 1u);
}

// Wherever it lies among them, and after works as after a measurement.
TEST(RailChoice, TheQuickestOfAnyNumberOfRailsIsFound) {
  for (size_t count = 1; count <= kMaxRails; ++count) {
    for (size_t best = 0; best < count; ++best) {
      std::vector<RailLoad> rails(count, rail(2, 10'000));
      rails[best].outstanding = 100;
      EXPECT_EQ(quickest_rail(rails, 8, 0), best) << "of " << count;
      RailLoads loads;
      for (size_t i = 0; i < count; ++i) {
        loads.add();
        loads.set(i, rail(2, 0));
        loads.submitted(i, i == best ? 100 : 10'000);
      }
      EXPECT_EQ(loads.quickest(8, 0), best) << "of " << count;
      EXPECT_EQ(loads[best].outstanding, 100u);
    }
  }
}

TEST(RailChoice, ASmallMessageStaysOnItsRailUnlessAnotherIsMuchBetter) {
  const std::vector equal{rail(2, 0), rail(2, 0), rail(1.9, 0)};
  for (size_t preferred = 0; preferred < 3; ++preferred) {
    EXPECT_EQ(quickest_rail(equal, 4096, preferred), preferred);
  }
  EXPECT_EQ(quickest_rail(std::vector{rail(2, 0), rail(1, 0)}, 4096, 0), 1u);
}

// What ready rails need is 0 ns here, and beside 0 the index of a rail would be lost.
TEST(RailChoice, TheQuickestIsFoundWhereAProgramFlushesDenormalsToZero) {
#if defined(__SSE__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushToZero | kDenormalsAreZero);
  RailLoad down{2, 0, 0, 1 << 20, false}, idle{2, 0, 0, 1 << 20, true};
  const size_t found = quickest_rail({down, down, idle, down}, 0, 0);
  const size_t first = quickest_rail({down, idle, idle, idle, idle, idle, idle, idle, idle}, 0, 0);
  _mm_setcsr(before);
  EXPECT_EQ(found, 2u);
  EXPECT_EQ(first, 1u);
#else
  GTEST_SKIP() << "only for processors with SSE";
#endif
}

// As rail_with_room(), though only the rail that is done first is looked at where it has room.
TEST(RailChoice, AStripeIsPlacedAsByALookAtAllRails) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 20'000; ++turn) {
    RailLoads loads;
    for (size_t i = random() % kMaxRails + 1; i > 0; --i) {
      loads.add();
      const double rate = 0.1 * (1 + random() % 8);
      loads.set(loads.size() - 1, {rate, 1000.0 * (random() % 64), random() % 40 * kStripe,
                                   random() % 32 * kStripe, random() % 8 != 0});
    }
    const uint64_t waiting = (1 + random() % 256) * kStripe;
    const size_t expected = rail_with_room(loads.all(), kStripe, waiting);
    const size_t chosen = loads.with_room(kStripe, waiting);
    if (chosen == expected) continue;
    ASSERT_TRUE(chosen != kNoRail && expected != kNoRail) << "turn " << turn;
    // Of rails that differ by next to nothing either may be taken.
    EXPECT_NEAR(loads[chosen].done_ns(kStripe) / loads[expected].done_ns(kStripe), 1, 1e-5);
    EXPECT_TRUE(loads[chosen].has_room(kStripe));
  }
}

TEST(RailChoice, ARailThatIsDownIsNotChosen) {
  std::vector rails{rail(1, 0), rail(8, 1 << 20)};
  rails[0].up = false;
  EXPECT_EQ(quickest_rail(rails, 8, 0), 1u);
  EXPECT_EQ(quickest_rail({rails[0], rails[0]}, 8, 0), kNoRail);
  EXPECT_EQ(rail_with_room(rails, kStripe, kStripe), kNoRail);  // full
  rails[1].outstanding = 0;
  EXPECT_EQ(rail_with_room(rails, kStripe, kStripe), 1u);
}

TEST(RailChoice, AStripeTakesTheBestRailThatHasRoom) {
  EXPECT_EQ(rail_with_room(std::vector{rail(8, 0), rail(2, 0)}, kStripe, kStripe), 1u);
  // With much more waiting, the slower rail is worth its while beside the full one.
  const std::vector rails{rail(8, 0), rail(2, 1 << 20)};
  EXPECT_EQ(rail_with_room(rails, kStripe, 8 << 20), 0u);
}

// The full rail is done with everything in 2.2 ms; the idle one would take 52 ms for this stripe.
TEST(RailChoice, TheLastStripesDoNotWaitForASlowRail) {
  const std::vector rails{rail(800, 0), rail(2, 1 << 20)};
  EXPECT_EQ(rail_with_room(rails, kStripe, kStripe), kNoRail);
  EXPECT_EQ(rail_with_room(rails, kStripe, 10 << 20), kNoRail);
  EXPECT_EQ(rail_with_room(rails, kStripe, 30 << 20), 0u);
}

TEST(RailChoice, AFullRailGetsOneWorkMoreThanIsInFlight) {
  const std::vector rails{rail(2, 4 << 20)};
  EXPECT_EQ(rail_with_room(rails, 1 << 20, 1 << 20), kNoRail);
  EXPECT_EQ(rail_with_room(rails, 4 << 20, 4 << 20), 0u);
}

// A rail of 1 Gbit/s that always has `outstanding` bytes.
void load(RailRate& rate, uint64_t* now_ns, uint64_t outstanding, int times, double ns_per_byte) {
  for (int i = 0; i < times; ++i) {
    rate.go_on(*now_ns, outstanding);
    *now_ns += static_cast<uint64_t>(static_cast<double>(outstanding) * ns_per_byte);
    rate.completed(outstanding);
    rate.observe(*now_ns, 0);
  }
}

TEST(RailRate, IsTheAdvertisedOneUntilTheRailIsLoaded) {
  RailRate rate(10'000);
  EXPECT_DOUBLE_EQ(rate.ns_per_byte(), 0.8);
  EXPECT_EQ(rate.window(), RailRate::kFirstWindow);
  uint64_t now_ns = 1;
  load(rate, &now_ns, RailRate::kLeastWindow - 1, 100, 8);
  EXPECT_DOUBLE_EQ(rate.ns_per_byte(), 0.8);
  load(rate, &now_ns, RailRate::kLeastWindow, 1, 8);
  EXPECT_NEAR(rate.ns_per_byte(), 8, 0.1);
  EXPECT_NEAR(static_cast<double>(rate.window()), RailRate::kLeastDepthNs / 8, 20'000);
}

TEST(RailRate, FollowsChangesBothWays) {
  RailRate rate(10'000);
  uint64_t now_ns = 1;
  load(rate, &now_ns, 1 << 20, 20, 8);
  const uint64_t slowed_ns = now_ns;
  while (rate.ns_per_byte() < 70) load(rate, &now_ns, 256 << 10, 1, 80);
  EXPECT_LT(now_ns - slowed_ns, 500'000'000u);
  const uint64_t recovered_ns = now_ns;
  while (rate.ns_per_byte() > 9) load(rate, &now_ns, 256 << 10, 1, 8);
  EXPECT_LT(now_ns - recovered_ns, 500'000'000u);
}

// As a rail that has just returned: its first bytes take long. It gets few stripes from then on.
TEST(RailRate, RisesWithFewMeasurementsAfterASlowMoment) {
  RailRate rate(400);
  uint64_t now_ns = 0;
  load(rate, &now_ns, 256 << 10, 1, 2000);
  EXPECT_GT(rate.ns_per_byte(), 1000);
  load(rate, &now_ns, 256 << 10, 5, 20);
  EXPECT_LT(rate.ns_per_byte(), 60);
}

TEST(RailRate, FallsWhileNothingCompletes) {
  RailRate rate(10'000);
  uint64_t now_ns = 1;
  load(rate, &now_ns, 1 << 20, 20, 8);
  rate.go_on(now_ns, 1 << 20);  // 8.4 ms
  rate.check_overdue(now_ns + 10'000'000);
  EXPECT_NEAR(rate.ns_per_byte(), 8, 0.1);
  rate.check_overdue(now_ns + 84'000'000);
  EXPECT_NEAR(rate.ns_per_byte(), 80, 1);
}

TEST(RailRate, LearnsTheLatencyFromSmallWorksOnAnIdleRail) {
  RailRate rate(10'000);
  uint64_t now_ns = 1;
  for (const uint64_t latency_ns : {500'000, 20'000, 90'000}) {
    rate.begin(now_ns, 64, true);
    rate.completed(64);
    rate.observe(now_ns + latency_ns, 0);
    now_ns += 1'000'000;
  }
  EXPECT_GT(rate.latency_ns(), 19'000);
  EXPECT_LT(rate.latency_ns(), 25'000);
}

// What it takes behind the works of other links is no latency of the path.
TEST(RailRate, LearnsNoLatencyBehindOtherLinks) {
  RailRate rate(10'000);
  for (const bool alone : {true, false}) {
    rate.begin(1, 64, alone);
    rate.completed(64);
    rate.observe(alone ? 20'000 : 100'000, 0);
  }
  EXPECT_NEAR(rate.latency_ns(), 20'000, 100);
  rate.begin(1, 64, false);
  rate.completed(64);
  rate.observe(10'000, 0);
  EXPECT_NEAR(rate.latency_ns(), 10'000, 100) << "an upper bound all the same";
}

TEST(RailRate, DeepensTheWindowOfARailThatRunsDry) {
  RailRate rate(10'000);
  uint64_t now_ns = 1;
  load(rate, &now_ns, 1 << 20, 20, 8);
  const uint64_t window = rate.window();
  rate.ran_dry();
  EXPECT_NEAR(static_cast<double>(rate.window()), 2 * static_cast<double>(window), 100);
  for (int i = 0; i < 100; ++i) rate.ran_dry();
  EXPECT_LE(static_cast<double>(rate.window()), RailRate::kMostDepthNs / 7.9);
  load(rate, &now_ns, 1 << 20, 100, 8);
  EXPECT_NEAR(static_cast<double>(rate.window()), static_cast<double>(window), 1000);
}

}  // namespace
}  // namespace slime::test
