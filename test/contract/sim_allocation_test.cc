// A warm simulated network allocates nothing per work: a million schedules must not be a test of
// the allocator.
#include <gtest/gtest.h>

#include "test/support/heap_count.h"
#include "test/support/sim_link.h"

namespace slime {
namespace {

using test::heap_allocations;

// 50 batches of 4 works of mixed sizes each way through delays, repeats and a small window.
void traffic(test::SimLink& link) {
  Done done[8];
  size_t count = 0;
  for (uint32_t round = 0; round < 200; ++round) {
    Work works[4];
    for (uint32_t i = 0; i < 4; ++i) works[i] = link.work(4 * (round % 50) + i, 1 + 67 * (i % 3));
    link.left->post(works, &count);
    for (Channel* channel : {link.left.get(), link.right.get()}) channel->poll(done, &count);
    link.network.step();
  }
}

TEST(SimAllocation, NonePerWorkOnceWarm) {
  for (const bool confirm : {false, true}) {
    test::SimLinkOptions options;
    options.confirm_delivery = confirm;
    options.caps.ordered = false;
    options.model.jitter_ns = 2'000;
    options.model.delay_ppm = 100'000;
    options.model.delay_ns = 9'000;
    options.model.repeat_arrived_ppm = 50'000;
    options.model.repeat_ns = 5'000;
    options.model.window_bytes = 2'000;
    test::SimLink link(options);
    ASSERT_TRUE(link.connect());
    for (int i = 0; i < 50; ++i) traffic(link);
    const uint64_t before = heap_allocations();
    ASSERT_GT(before, 0U) << "the counter does not count";
    for (int i = 0; i < 50; ++i) traffic(link);
    // 40,000 works; a pool may still meet a new maximum.
    EXPECT_LE(heap_allocations() - before, 4U);
    EXPECT_EQ(link.network.violations().total(), 0U);
    EXPECT_GT(snapshot(link.right->counters).arrivals, 5'000U);
  }
}

// The next schedule pays for its channels and for nothing else.
TEST(SimAllocation, OnlyTheChannelsPerSchedule) {
  test::SimLink link({});
  const auto schedule = [&](uint64_t seed) {
    link.left.reset();
    link.right.reset();
    link.network.reset(seed);
    link.open();
    ASSERT_TRUE(link.connect());
    traffic(link);
  };
  for (uint64_t seed = 1; seed <= 20; ++seed) schedule(seed);
  const uint64_t before = heap_allocations();
  for (uint64_t seed = 21; seed <= 120; ++seed) schedule(seed);
  EXPECT_LE(heap_allocations() - before, 100U * 6);
}

}  // namespace
}  // namespace slime
