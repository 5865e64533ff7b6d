#include "link/rail/post_queue.h"

#include <gtest/gtest.h>

#include <numeric>

#include "test/support/fake_rail.h"

namespace slime::test {
namespace {

Work work_of(uint32_t bytes) {
  Work work;
  work.length = bytes;
  return work;
}

class PostQueueTest : public ::testing::Test {
 protected:
  void fill(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) queue.push(work_of(100), next_cookie++);
  }
  void flush() { ASSERT_EQ(queue.flush(channel, now_ns), Status::kOk); }
  void complete(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) queue.complete(100);
  }
  size_t posted() const {
    return std::accumulate(channel.batches.begin(), channel.batches.end(), size_t{0});
  }

  FakeChannel channel;
  PostQueue queue{PostPolicy{.depth = 32, .max_batch = 16, .watermark = 8, .flush_ns = 1000}};
  uint64_t now_ns = 0;
  uint64_t next_cookie = 0;
};

TEST_F(PostQueueTest, AnIdleRailIsPostedToAtOnce) {
  fill(1);
  flush();
  EXPECT_EQ(channel.batches, (std::vector<size_t>{1}));
}

TEST_F(PostQueueTest, NothingQueuedRingsNoDoorbell) {
  flush();
  EXPECT_TRUE(channel.batches.empty());
}

TEST_F(PostQueueTest, WithoutCreditsNothingIsPosted) {
  fill(64);
  flush();
  flush();  // 32 in flight
  const size_t doorbells = channel.batches.size();
  flush();
  flush();
  EXPECT_EQ(channel.batches.size(), doorbells) << "a futile post";
  EXPECT_EQ(queue.in_flight(), 32u);
}

TEST_F(PostQueueTest, ABusyRailWaitsForTheWatermarkOfCredits) {
  fill(64);
  flush();
  flush();
  complete(7);
  flush();
  EXPECT_EQ(posted(), 32u) << "posted below the watermark";
  now_ns += 1'000'000;  // time alone changes nothing: completions are on their way
  flush();
  EXPECT_EQ(posted(), 32u);
  EXPECT_GT(channel.counters.deferred.get(), 0u);
  complete(1);
  flush();
  EXPECT_EQ(channel.batches.back(), 8u);
}

TEST_F(PostQueueTest, AShortQueueOnABusyRailWaitsForItsTimeOnly) {
  fill(20);
  flush();
  flush();  // 20 in flight: more than half of the depth
  fill(1);
  flush();
  EXPECT_EQ(posted(), 20u);
  now_ns += 999;
  flush();
  EXPECT_EQ(posted(), 20u);
  now_ns += 1;
  flush();
  EXPECT_EQ(posted(), 21u);
}

TEST_F(PostQueueTest, ARailThatRunsLowIsFedWhateverTheBatch) {
  fill(33);
  flush();
  flush();
  complete(16);  // 16 in flight: half of the depth
  flush();
  EXPECT_EQ(posted(), 33u);
}

TEST_F(PostQueueTest, WorksLeaveInOrderAcrossTheWrap) {
  uint64_t expected = 0;
  for (int round = 0; round < 200; ++round) {
    fill(13);
    while (queue.queued() > 0) {
      flush();
      complete(queue.in_flight());
    }
  }
  for (const Work& work : channel.in_flight) EXPECT_EQ(work.cookie, expected++);
  EXPECT_EQ(expected, 200u * 13);
}

// Works wait while others leave, in a queue whose memory grows: it is full before each time, with
// its oldest work somewhere in the middle.
TEST_F(PostQueueTest, AGrowingQueueKeepsItsOrder) {
  PostQueue growing{PostPolicy{.depth = 32, .max_batch = 16, .watermark = 8, .grows = true}};
  uint64_t pushed = 0;
  const auto push_until_queued = [&](uint32_t works) {
    while (growing.queued() < works) growing.push(work_of(100), pushed++);
  };
  const auto send_some = [&] {
    ASSERT_EQ(growing.flush(channel, now_ns), Status::kOk);
    for (uint32_t i = growing.in_flight(); i > 0; --i) growing.complete(100);
  };
  for (const uint32_t most : {40U, 64U, 65U, 200U, PostQueue::kCapacity}) {
    push_until_queued(most);
    send_some();
    push_until_queued(most);
  }
  EXPECT_EQ(growing.room(), 0U);
  while (growing.queued() > 0) send_some();
  uint64_t expected = 0;
  for (const Work& work : channel.in_flight) ASSERT_EQ(work.cookie, expected++);
  EXPECT_EQ(expected, pushed);
  EXPECT_EQ(growing.outstanding_bytes(), 0U);
}

TEST_F(PostQueueTest, WhatTheRailDoesNotTakeStaysQueued) {
  channel.takes = 3;
  fill(5);
  flush();
  EXPECT_EQ(queue.queued(), 2u);
  EXPECT_EQ(queue.in_flight(), 3u);
}

TEST_F(PostQueueTest, OutstandingBytesCountWaitingAndFlying) {
  fill(2);
  EXPECT_EQ(queue.outstanding_bytes(), 200u);
  flush();
  EXPECT_EQ(queue.outstanding_bytes(), 200u);
  complete(2);
  EXPECT_EQ(queue.outstanding_bytes(), 0u);
}

TEST(PostPolicy, FitsWhatTheRailCanDo) {
  RailCaps caps;
  caps.send_queue_depth = 4;
  caps.max_batch = 2;
  const PostPolicy policy = PostQueue::fit({.max_batch = 64, .watermark = 16}, caps, 0);
  EXPECT_EQ(policy.depth, 4u);
  EXPECT_EQ(policy.max_batch, 2u);
  EXPECT_LE(policy.watermark, policy.max_batch);
}

}  // namespace
}  // namespace slime::test
