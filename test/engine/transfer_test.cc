// Transfers on rails that only record their works: what waits, what is lost, what is sent again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <optional>
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
  static constexpr uint32_t kReads = 3;  // that a rail may have under way
  TransferTest() : LinkPartsTest(2, kReads) {}

  void start_one(TestTransfer& transfer, Opcode opcode, uint64_t bytes = 1000,
                 std::optional<StripePlan> plan = {}) {
    queue_.start(transfer,
                 {.local = memory_.outbox(),
                  .region = memory_.outbox_region(),
                  .bytes = bytes,
                  .remote_keys = keys_.data(),
                  .opcode = opcode,
                  .may_be_refused = true},
                 plan.value_or(queue_.plan(bytes)));
  }
  // The works of a kind that a rail has been given.
  std::vector<Work> works(size_t rail, Opcode opcode) {
    posted(rail);
    std::vector<Work> works;
    for (const Work& work : channel(rail).in_flight) {
      if (work.opcode == opcode && !is_control(work.immediate)) works.push_back(work);
    }
    return works;
  }
  // The newest work of a rail ends, as refused.
  void refuse(size_t rail) {
    std::vector<Work>& works = channel(rail).in_flight;
    const OpenWork* const ended = rails_[rail].works.end(works.back().cookie);
    works.pop_back();
    rails_.completed(rail, rails_[rail], *ended);
    EXPECT_TRUE(ended->owner->on_refused(ended->part));
  }
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

TEST_F(TransferTest, ReadsWaitForPlacesOfTheirOwn) {
  std::vector<TestTransfer> reads(2 * kReads + 4);
  for (TestTransfer& read : reads) start_one(read, Opcode::kRead);
  size_t under_way = 0;
  for (const size_t rail : {0, 1}) {
    const size_t here = works(rail, Opcode::kRead).size();
    EXPECT_LE(here, kReads);
    EXPECT_EQ(rails_.room_for_reads(rail), kReads - here);
    EXPECT_GT(rails_.room(rail), kReads);
    under_way += here;
  }
  EXPECT_GE(under_way, kReads);
  EXPECT_TRUE(queue_.any());
  finish(0, 2);
  for (const TestTransfer& read : reads) EXPECT_TRUE(read.done() && !read.refused());
  for (const size_t rail : {0, 1}) EXPECT_EQ(rails_.room_for_reads(rail), kReads);
}

TEST_F(TransferTest, PlacesOfReadsAreFreeInTheNextLife) {
  std::vector<TestTransfer> reads(2 * kReads);
  for (TestTransfer& read : reads) start_one(read, Opcode::kRead);
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_EQ(rails_.room_for_reads(0), kReads);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  finish(1, 2);
  for (const TestTransfer& read : reads) EXPECT_TRUE(read.done());
}

// Three of its stripes are under way, and a later transfer waits behind the other three.
TEST_F(TransferTest, ARefusedTransferEndsWithWhatIsUnderWayAndSendsNoMore) {
  EXPECT_EQ(die(1), Status::kOk);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 1, 0), Status::kOk);
  deliver(0);
  TestTransfer refused, later;
  start_one(refused, Opcode::kRead, 6 * 256, StripePlan{6, 256});
  start_one(later, Opcode::kRead);
  ASSERT_EQ(works(0, Opcode::kRead).size(), kReads);
  refuse(0);
  EXPECT_TRUE(refused.refused());
  EXPECT_FALSE(refused.done()) << "two are under way";
  queue_.submit_waiting();
  EXPECT_FALSE(queue_.any()) << "the later one has a place";
  EXPECT_EQ(works(0, Opcode::kRead).size(), kReads);
  deliver(0);
  EXPECT_TRUE(refused.done());
  EXPECT_TRUE(later.done() && !later.refused());
  start_one(refused, Opcode::kWrite);
  EXPECT_FALSE(refused.refused()) << "a new use";
  finish(0, 1);
  EXPECT_TRUE(refused.done());
}

TEST_F(TransferTest, ARefusedTransferLeavesTheEndOfTheQueue) {
  TestTransfer lost, refused, later;
  start_one(lost, Opcode::kRead);
  const size_t dead = works(0, Opcode::kRead).empty() ? 1 : 0, rail = 1 - dead;
  EXPECT_EQ(die(dead), Status::kOk);
  deliver(rail);
  start_one(refused, Opcode::kRead, 6 * 256, StripePlan{6, 256});
  ASSERT_EQ(works(rail, Opcode::kRead).size(), kReads);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, dead, 0), Status::kOk);  // `lost` is the first now
  refuse(rail);
  start_one(later, Opcode::kRead);
  finish(rail, rail + 1);
  EXPECT_TRUE(lost.done() && refused.done() && later.done());
  EXPECT_TRUE(refused.refused());
}

// The rest of it, on a rail that dies, is not sent again.
TEST_F(TransferTest, WhatIsLostOfARefusedTransferHasEnded) {
  TestTransfer transfer;
  start_one(transfer, Opcode::kRead, 6 * 256, StripePlan{6, 256});
  const size_t rail = works(0, Opcode::kRead).empty() ? 1 : 0;
  refuse(rail);
  for (const size_t dead : {0, 1}) {
    if (dead != rail) {
      deliver(dead);
      continue;
    }
    EXPECT_EQ(die(dead), Status::kOk);
    EXPECT_EQ(peer_says(ControlOp::kFenceNotice, dead, 0), Status::kOk);
  }
  EXPECT_FALSE(queue_.any());
  EXPECT_TRUE(transfer.done() && transfer.refused());
}

TEST_F(TransferTest, ARefusalThatNobodyExpectsIsNoEndOfTheTransfer) {
  TestTransfer transfer;
  start(transfer, 100, 1000);
  const size_t rail = posted(0).empty() ? 1 : 0;
  std::vector<Work>& works = channel(rail).in_flight;
  const OpenWork* const ended = rails_[rail].works.end(works.back().cookie);
  EXPECT_FALSE(ended->owner->on_refused(ended->part));
  EXPECT_FALSE(transfer.refused());
  EXPECT_FALSE(transfer.done());
}

TEST_F(TransferTest, AReadTakesARailThatHasAPlaceForIt) {
  const size_t full = rails_.quickest_rail(1000);
  Work read;
  read.opcode = Opcode::kRead;
  for (uint32_t i = 0; i < kReads; ++i) rails_.submit(full, read, nullptr, 0);
  TestTransfer whole, cut;
  start_one(whole, Opcode::kRead);
  start_one(cut, Opcode::kRead, 1000, StripePlan{2, 500});
  queue_.submit_waiting();
  EXPECT_EQ(rails_[1 - full].reads, 3U);
  EXPECT_FALSE(queue_.any());
}

}  // namespace
}  // namespace slime::test
