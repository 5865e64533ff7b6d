// When things happen on a simulated rail, to the nanosecond.
#include <gtest/gtest.h>

#include <algorithm>

#include "test/support/sim_link.h"

namespace slime {
namespace {

using test::SimLink;
using test::SimLinkOptions;

// The virtual time at which the next completion shows up at this end.
uint64_t next_report_ns(SimLink& link, Channel& channel) {
  Done done;
  size_t count = 0;
  do {
    EXPECT_EQ(channel.poll({&done, 1}, &count), Status::kOk);
  } while (count == 0 && link.network.step());
  return count == 0 ? 0 : link.network.now_ns();
}

TEST(SimTiming, SixtyFourKibibytesAtHundredGigabits) {
  SimLink link({});
  ASSERT_TRUE(link.connect());
  ASSERT_EQ(link.post(0, 1, 65'536), 1U);
  EXPECT_EQ(next_report_ns(link, *link.left), 5'243U);   // 65536 B / 12.5 B/ns, rounded up
  EXPECT_EQ(next_report_ns(link, *link.right), 7'243U);  // and the latency
}

TEST(SimTiming, RoundingDoesNotAddUp) {
  SimLink link({});
  ASSERT_TRUE(link.connect());
  ASSERT_EQ(link.post(0, 16, 65'536), 16U);
  uint64_t last = 0;
  for (int i = 0; i < 16; ++i) last = next_report_ns(link, *link.left);
  EXPECT_EQ(last, 83'887U);  // 16 * 5242.88 = 83886.08
}

TEST(SimTiming, ConfirmationTakesTheWayBack) {
  SimLinkOptions options;
  options.confirm_delivery = true;
  SimLink link(options);
  ASSERT_TRUE(link.connect());
  link.post(0, 1, 65'536);
  EXPECT_EQ(next_report_ns(link, *link.left), 0U) << "the other end was not polled";
  EXPECT_EQ(link.network.now_ns(), 7'243U);
  link.network.advance(1'000);
  EXPECT_EQ(next_report_ns(link, *link.right), 8'243U);
  EXPECT_EQ(next_report_ns(link, *link.left), 10'243U);
}

TEST(SimTiming, TheProcessorPaysForDoorbellsWorksAndPolls) {
  SimLinkOptions options;
  options.caps.send_queue_depth = 10;
  options.model.costs = {.post_ns = 250, .doorbell_ns = 150, .refused_ns = 90, .poll_ns = 30};
  SimLink link(options);
  ASSERT_TRUE(link.connect());
  EXPECT_EQ(link.post(0, 4, 100), 4U);
  EXPECT_EQ(link.network.now_ns(), 150U + 4 * 250);
  EXPECT_EQ(link.post(4, 20, 100), 6U);
  EXPECT_EQ(link.network.now_ns(), 2 * 150U + 10 * 250);
  const uint64_t full_ns = link.network.now_ns();
  EXPECT_EQ(link.post(10, 1, 100), 0U);
  EXPECT_EQ(link.network.now_ns(), full_ns + 90);
  size_t count = 0;
  ASSERT_EQ(link.right->poll({}, &count), Status::kOk);
  EXPECT_EQ(link.network.now_ns(), full_ns + 90 + 30);
  EXPECT_EQ(snapshot(link.left->counters).doorbells, 2U);
  EXPECT_EQ(snapshot(link.left->counters).futile_posts, 1U);
}

TEST(SimTiming, TheSlowerRailSetsThePace) {
  SimLink link({});
  sim::RailModel slow = link.right_rail->model();
  slow.rate_mbps = 25'000;
  slow.latency_ns = 7'000;
  link.right_rail->configure(link.right_rail->caps(), slow);
  ASSERT_TRUE(link.connect());
  link.post(0, 1, 12'500);
  EXPECT_EQ(next_report_ns(link, *link.left), 4'000U);    // at 3.125 B/ns
  EXPECT_EQ(next_report_ns(link, *link.right), 11'000U);  // and the longer latency
}

TEST(SimTiming, ChannelsShareTheWire) {
  SimLink link({});
  ASSERT_TRUE(link.connect());
  auto first_left = std::move(link.left);
  auto first_right = std::move(link.right);
  link.open();
  ASSERT_TRUE(link.connect());
  const Work work = link.work(0, 12'500);
  size_t taken = 0;
  ASSERT_EQ(first_left->post({&work, 1}, &taken), Status::kOk);
  ASSERT_EQ(link.left->post({&work, 1}, &taken), Status::kOk);
  EXPECT_EQ(next_report_ns(link, *link.left), 2'000U);  // behind the other: 2 * 12500 B
  ASSERT_EQ(link.right->post({}, &taken), Status::kOk);
  EXPECT_EQ(SimLink::drain(*first_left).size(), 1U);
  EXPECT_EQ(next_report_ns(link, *first_right), 3'000U);
  EXPECT_EQ(next_report_ns(link, *link.right), 4'000U);
}

std::vector<uint32_t> order_of_arrival(bool ordered, uint64_t seed) {
  SimLinkOptions options;
  options.seed = seed;
  options.caps.ordered = ordered;
  options.model.jitter_ns = 5'000;
  options.model.delay_ppm = 100'000;
  options.model.delay_ns = 50'000;
  SimLink link(options);
  EXPECT_TRUE(link.connect());
  EXPECT_EQ(link.post(0, 50, 1'000), 50U);
  std::vector<uint32_t> order;
  for (const Done& done : link.play()) order.push_back(done.immediate);
  EXPECT_EQ(order.size(), 50U);
  return order;
}

TEST(SimTiming, OnlyUnorderedRailsReorder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_TRUE(std::ranges::is_sorted(order_of_arrival(true, seed)));
    EXPECT_FALSE(std::ranges::is_sorted(order_of_arrival(false, seed)));
  }
  EXPECT_EQ(order_of_arrival(false, 3), order_of_arrival(false, 3));
  EXPECT_NE(order_of_arrival(false, 3), order_of_arrival(false, 4));
}

TEST(SimTiming, WithoutConfirmationTheWindowHoldsSentBack) {
  SimLinkOptions options;
  options.model.window_bytes = 10 * (1'000 + sim::kWorkOverheadBytes);
  SimLink link(options);
  ASSERT_TRUE(link.connect());
  ASSERT_EQ(link.post(0, 30, 1'000), 30U);
  while (link.network.step()) continue;
  EXPECT_EQ(SimLink::drain(*link.left).size(), 10U) << "the peer has not reported any";
  Done done[4];
  size_t count = 0;
  ASSERT_EQ(link.right->poll(done, &count), Status::kOk);
  EXPECT_EQ(count, 4U);
  EXPECT_EQ(SimLink::drain(*link.left).size(), 4U);
  EXPECT_EQ(link.play().size(), 26U);
  EXPECT_EQ(link.sent, 16U);
}

TEST(SimTiming, AWorkLargerThanTheWindowPassesAlone) {
  SimLinkOptions options;
  options.model.window_bytes = 100;
  SimLink link(options);
  ASSERT_TRUE(link.connect());
  ASSERT_EQ(link.post(0, 3, 1'000), 3U);
  EXPECT_EQ(link.play().size(), 3U);
  EXPECT_EQ(link.sent, 3U);
}

}  // namespace
}  // namespace slime
