// Time-outs of rounds, with a clock of numbers.
#include "collnet/worker/retransmission.h"

#include <gtest/gtest.h>

namespace slime {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr RoundTrip::Limits kLimits{.initial_ns = 5 * kMs, .min_ns = kMs, .max_ns = 200 * kMs};

TEST(RoundTrip, DoublesFromTheFirstTimeOutToTheLongest) {
  const RoundTrip trip(kLimits);
  EXPECT_EQ(trip.timeout_ns(0), 5 * kMs);
  EXPECT_EQ(trip.timeout_ns(1), 10 * kMs);
  EXPECT_EQ(trip.timeout_ns(5), 160 * kMs);
  EXPECT_EQ(trip.timeout_ns(6), 200 * kMs);
  EXPECT_EQ(trip.timeout_ns(1000), 200 * kMs);
}

TEST(RoundTrip, LeavesAMarginOfARoundTripAtLeast) {
  RoundTrip trip(kLimits);
  for (int i = 0; i < 200; ++i) trip.measured(10 * kMs);
  EXPECT_EQ(trip.smoothed_ns(), 10 * kMs);
  EXPECT_EQ(trip.timeout_ns(0), 20 * kMs);
}

TEST(RoundTrip, OfTimeOutsAtOnceOneCounts) {
  RoundTrip trip(kLimits);
  for (int i = 0; i < 64; ++i) trip.timed_out(kMs);
  EXPECT_EQ(trip.timeout_ns(0), 10 * kMs);
  trip.timed_out(12 * kMs);
  EXPECT_EQ(trip.timeout_ns(0), 20 * kMs);
  trip.measured(kMs);
  EXPECT_EQ(trip.timeout_ns(0), 3 * kMs) << "1 ms, and four times the deviation of 0.5";
}

TEST(Retransmission, MeasuresRoundsThatWereSentOnce) {
  Retransmission timers(kLimits, 300 * kMs);
  RoundTimer timer;
  timers.begin(&timer, 100 * kMs, 0);
  timers.sent(&timer, 100 * kMs);
  EXPECT_EQ(timer.deadline_ns, 105 * kMs);
  timers.timed_out(&timer, 105 * kMs);
  timers.sent(&timer, 105 * kMs);
  EXPECT_EQ(timer.deadline_ns, 115 * kMs);
  timers.answered(timer, 110 * kMs);
  EXPECT_EQ(timers.round_trip_ns(), 0u);

  timer.resent = false;
  timers.begin(&timer, 200 * kMs, 0);
  timers.sent(&timer, 200 * kMs);
  timers.answered(timer, 203 * kMs);
  EXPECT_EQ(timers.round_trip_ns(), 3 * kMs);
}

TEST(Retransmission, KnowsTheEarliestDeadline) {
  Retransmission timers(kLimits, 300 * kMs);
  RoundTimer one, other;
  timers.set_next(UINT64_MAX);
  timers.begin(&one, 10 * kMs, 0);
  timers.sent(&one, 10 * kMs);
  timers.begin(&other, 2 * kMs, 0);
  timers.sent(&other, 2 * kMs);
  EXPECT_EQ(timers.next_ns(), other.deadline_ns);
}

TEST(Retransmission, AsksForMissingRanksNowAndThen) {
  const Retransmission timers(kLimits, 300 * kMs);
  RoundTimer timer;
  timers.begin(&timer, 0, 0);
  EXPECT_FALSE(timers.take_query(&timer, 299 * kMs));
  EXPECT_TRUE(timers.take_query(&timer, 300 * kMs));
  EXPECT_FALSE(timers.take_query(&timer, 599 * kMs));
  EXPECT_TRUE(timers.take_query(&timer, 600 * kMs));
}

}  // namespace
}  // namespace slime
