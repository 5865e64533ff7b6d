// Parts of a link without a link: which rail takes a work, how a dead rail ends, how one returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "link/rejoin.h"
#include "test/support/fake_rail.h"
#include "test/support/manual_clock.h"

namespace slime::test {
namespace {

constexpr size_t kRails = 2;

class LinkPartsTest : public ::testing::Test, private LinkEnd, private CompletionSink {
 protected:
  LinkPartsTest() {
    context_.set_user(*this);
    for (size_t i = 0; i < kRails; ++i) {
      rails_.add({std::make_unique<FakeChannel>(), i, 10'000});
    }
  }

  FakeChannel& channel(size_t rail) { return static_cast<FakeChannel&>(*rails_[rail].channel); }
  void pass(double seconds) {
    clock_.pass(seconds_to_ns(seconds));
    rails_.read_clock();
  }
  // What waits on a rail is posted and done.
  std::vector<ControlOp> deliver(size_t rail) {
    rails_.flush(rail, false);
    std::vector<ControlOp> posted;
    for (const Work& work : channel(rail).in_flight) {
      posted.push_back(control_op(work.immediate));
      const OpenWork* const ended = rails_[rail].works.end(work.cookie);
      rails_.completed(rail, rails_[rail], *ended);
      if (ended->owner != nullptr) ended->owner->on_done(ended->part);
    }
    channel(rail).in_flight.clear();
    return posted;
  }
  void write_join_record(const JoinRecord& record) {
    std::memcpy(memory_.inbox() + join_offset(0, record.rail), &record, sizeof record);
  }
  Status die(size_t rail) {
    return failover_.fail_rail(rail, make_error(Status::kRemote, 0, "the test ended it"));
  }
  Status peer_says(ControlOp op, size_t rail, uint32_t epoch) {
    return rejoin_.on_message(op, {static_cast<uint32_t>(rail), epoch});
  }

  ManualClock clock_;
  std::unique_ptr<Devices> devices_ = make_devices();
  LinkContext context_{*devices_, *devices_->device(0), "peer", true, kNoTrafficClass};
  LinkMemory memory_{records(), records(), {}, {}};
  LinkRails rails_{context_, memory_};
  RailLiveness liveness_{rails_};
  Failover failover_{rails_, *this};
  Rejoin rejoin_{rails_, failover_, liveness_};
  std::vector<size_t> fenced_;  // rails whose works the user was told to repeat

 private:
  RegisteredBuffer records() {
    return std::move(*RegisteredBuffer::make(*devices_->device(0), link_memory_bytes(0, kRails)));
  }
  std::unique_ptr<Devices> make_devices() {
    std::vector<std::unique_ptr<Rail>> rails;
    for (size_t i = 0; i < kRails; ++i) {
      rails.push_back(std::make_unique<FakeRail>(fake_caps("fake." + std::to_string(i))));
    }
    return Devices::of_rails(std::move(rails), Settings(), clock_);
  }

  Status on_arrived(size_t, uint32_t, uint64_t) override { return Status::kOk; }
  OutboxPiece fence_record(const RailLife&) override { return {}; }
  Status on_both_fenced(const RailLife& life) override {
    fenced_.push_back(life.rail);
    return Status::kOk;
  }
  Status handle_completion(size_t, const Done&) override { return Status::kOk; }
};

TEST_F(LinkPartsTest, ASmallWorkTakesTheRailThatIsDoneFirst) {
  const size_t first = rails_.quickest_rail(0);
  rails_.submit(first, {.length = 1 << 20}, nullptr, 0);
  EXPECT_NE(rails_.quickest_rail(0), first) << "it has a megabyte to do";
  EXPECT_EQ(rails_.busy(), 1u << first);
}

TEST_F(LinkPartsTest, ADeadRailIsToldOverTheOtherAndSettledWhenThePeerAnswers) {
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_EQ(rails_.up_count(), 1u);
  EXPECT_EQ(rails_.quickest_rail(0), 1u);
  EXPECT_EQ(rails_[0].life.state(), RailState::kFenced);
  EXPECT_THAT(failover_.unanswered_deaths(), testing::HasSubstr("the test ended it"));
  EXPECT_THAT(deliver(1), testing::ElementsAre(ControlOp::kFenceNotice));
  EXPECT_TRUE(fenced_.empty()) << "the peer may still write";
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  EXPECT_THAT(fenced_, testing::ElementsAre(0u));
  EXPECT_EQ(rails_[0].life.state(), RailState::kDown);
  EXPECT_EQ(failover_.unanswered_deaths(), "");
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  EXPECT_EQ(fenced_.size(), 1u) << "it said so twice";
}

TEST_F(LinkPartsTest, WhatThePeerSaysFirstEndsTheRailHereToo) {
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 1, 0), Status::kOk);
  EXPECT_EQ(rails_[1].life.state(), RailState::kDown);
  EXPECT_THAT(fenced_, testing::ElementsAre(1u));
}

TEST_F(LinkPartsTest, TheLastRailEndsTheLink) {
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_EQ(die(1), Status::kRemote);
  EXPECT_THAT(context_.failure().what, testing::HasSubstr("it was the last rail of the link"));
}

TEST_F(LinkPartsTest, ARailReturnsWhenBothEndsAreConnected) {
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  deliver(1);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  EXPECT_EQ(rails_[0].life.state(), RailState::kDown) << "its pause is not over";
  pass(context_.settings().rail_retry + 1);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  ASSERT_EQ(rails_[0].life.state(), RailState::kJoining);
  EXPECT_EQ(rails_[0].life.epoch(), 1u);
  EXPECT_THAT(deliver(1), testing::ElementsAre(ControlOp::kJoin));
  write_join_record({0, 1, {}});
  EXPECT_EQ(peer_says(ControlOp::kJoin, 0, 1), Status::kOk);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  EXPECT_THAT(deliver(1), testing::ElementsAre(ControlOp::kJoined));
  EXPECT_EQ(rails_.up_count(), 1u) << "the peer is not connected yet";
  EXPECT_EQ(peer_says(ControlOp::kJoined, 0, 1), Status::kOk);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  EXPECT_EQ(rails_.up_count(), 2u);
  EXPECT_EQ(rejoin_.rejoins(), 1u);
}

TEST_F(LinkPartsTest, ATryThatThePeerDoesNotAnswerIsFencedAndPlannedAgain) {
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  deliver(1);
  pass(context_.settings().rail_retry + 1);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  ASSERT_EQ(rails_[0].life.state(), RailState::kJoining);
  deliver(1);
  pass(60);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  EXPECT_EQ(rails_[0].life.state(), RailState::kFenced);
  EXPECT_THAT(deliver(1), testing::ElementsAre(ControlOp::kFenceNotice));
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 1), Status::kOk);
  EXPECT_EQ(rails_[0].life.state(), RailState::kDown);
}

TEST(RetryPause, DoublesUpToAMinuteOfFirstOnes) {
  RetryPause retry(10);
  std::vector<uint64_t> pauses;
  for (int i = 0; i < 8; ++i) {
    retry.plan(1000);
    pauses.push_back(retry.next_ns() - 1000);
  }
  EXPECT_THAT(pauses, testing::ElementsAre(10, 20, 40, 80, 160, 320, 600, 600));
  EXPECT_FALSE(retry.due(1599));
  EXPECT_TRUE(retry.due(1600));
  EXPECT_FALSE(RetryPause(0).due(UINT64_MAX)) << "dead rails stay dead";
}

}  // namespace
}  // namespace slime::test
