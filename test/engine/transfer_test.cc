// Transfers on rails that only record their works: what waits, what is lost, what is sent again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "link/transfer_queue.h"
#include "test/support/link_parts_fixture.h"

namespace slime::test {
namespace {

struct TestTransfer final : Transfer {
  TestTransfer() = default;
};

class TransferTest : public LinkPartsTest {
 protected:
  // Returns the immediates of its stripes.
  std::vector<uint32_t> start(TestTransfer& transfer, uint32_t first_immediate,
                              uint64_t bytes = 8 << 20) {
    const StripePlan plan = queue_.plan(bytes);
    const TransferPiece piece{.local = memory_.outbox(),
                              .region = memory_.outbox_region(),
                              .bytes = bytes,
                              .remote_keys = keys_.data(),
                              .immediate = first_immediate,
                              .immediate_step = 1};
    queue_.start(transfer, piece, plan);
    std::vector<uint32_t> immediates(plan.stripes);
    std::iota(immediates.begin(), immediates.end(), first_immediate);
    return immediates;
  }
  // Posts what waits on a rail. Returns the immediates of what is in flight there.
  std::vector<uint32_t> posted(size_t rail) {
    rails_.flush(rail, false);
    std::vector<uint32_t> immediates;
    for (const Work& work : channel(rail).in_flight) immediates.push_back(work.immediate);
    return immediates;
  }
  // Works are done, and others take their places, until nothing is left on these rails.
  void finish(size_t from, size_t to) {
    for (int round = 0; round < 1000; ++round) {
      bool any = queue_.any();
      for (size_t rail = from; rail < to; ++rail) {
        const std::vector<uint32_t> done = posted(rail);
        any |= !done.empty();
        arrived_.insert(arrived_.end(), done.begin(), done.end());
        deliver(rail);
      }
      if (!any) return;
      queue_.submit_waiting();
    }
    FAIL() << "a transfer is not done";
  }

  const std::array<uint64_t, kMaxRails> keys_ = {};
  RailScheduler scheduler_{rails_, liveness_};
  TransferQueue queue_{rails_, scheduler_};
  std::vector<uint32_t> arrived_;
};

TEST_F(TransferTest, EachStripeGoesOnce) {
  TestTransfer transfer;
  const std::vector<uint32_t> stripes = start(transfer, 100);
  ASSERT_GE(stripes.size(), 4u);
  EXPECT_FALSE(transfer.done());
  finish(0, 2);
  EXPECT_TRUE(transfer.done());
  EXPECT_THAT(arrived_, testing::UnorderedElementsAreArray(stripes));
}

TEST_F(TransferTest, WhatIsLostGoesOverTheOtherRail) {
  TestTransfer transfer;
  const std::vector<uint32_t> stripes = start(transfer, 100), lost = posted(0);
  ASSERT_FALSE(lost.empty());
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_FALSE(transfer.done());
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  finish(1, 2);
  EXPECT_TRUE(transfer.done());
  std::erase_if(arrived_, is_control);
  EXPECT_THAT(arrived_, testing::UnorderedElementsAreArray(stripes));
  EXPECT_EQ(rails_[1].channel->counters.retries.get(), lost.size());
}

TEST_F(TransferTest, WhatThePeerHadIsNotSentAgain) {
  TestTransfer transfer;
  start(transfer, 100);
  const std::vector<uint32_t> lost = posted(0);
  ASSERT_FALSE(lost.empty());
  EXPECT_EQ(die(0), Status::kOk);
  uint64_t had = 0;
  for (const uint32_t immediate : lost) had |= uint64_t{1} << (immediate - 100);
  transfer.note_arrived(had);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  finish(1, 2);
  EXPECT_TRUE(transfer.done());
  for (const uint32_t one : lost) EXPECT_THAT(arrived_, testing::Not(testing::Contains(one)));
}

// The queue is empty: the stripe that comes back is its first and its last.
TEST_F(TransferTest, ALostStripeWaitsAheadOfALaterTransfer) {
  TestTransfer earlier, lost, later;
  start(earlier, 100);
  finish(0, 2);
  arrived_.clear();
  start(lost, 900, 1000);
  ASSERT_FALSE(queue_.any());
  const size_t rail = posted(0).empty() ? 1 : 0, other = 1 - rail;
  ASSERT_THAT(posted(rail), testing::ElementsAre(900u));
  channel(other).takes = 0;  // and its queue is full
  while (rails_.room(other) > 0) rails_.submit(other, {.length = 0}, nullptr, 0);
  EXPECT_EQ(die(rail), Status::kOk);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, rail, 0), Status::kOk);
  ASSERT_FALSE(lost.done());
  queue_.submit_waiting();
  ASSERT_TRUE(queue_.any());
  start(later, 500);
  channel(other).takes = SIZE_MAX;
  finish(other, other + 1);
  EXPECT_TRUE(lost.done() && later.done());
  std::erase_if(arrived_, [](uint32_t one) { return one == 0 || is_control(one); });
  EXPECT_THAT(arrived_, testing::ElementsAre(900u, 500u));
}

}  // namespace
}  // namespace slime::test
