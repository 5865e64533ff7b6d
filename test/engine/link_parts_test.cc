// Parts of a link without a link: which rail takes a work, how a dead rail ends, how one returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/support/link_parts_fixture.h"

namespace slime::test {
namespace {

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

class ThreeRailsTest : public LinkPartsTest {
 protected:
  ThreeRailsTest() : LinkPartsTest(3) {}

  // Rail 0 has died and is joining. Our kJoined for that waits on rail 1, which stalls.
  void join_until_connected() {
    EXPECT_EQ(die(0), Status::kOk);
    EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
    deliver(1), deliver(2);
    pass(context_.settings().rail_retry + 1);
    EXPECT_EQ(rejoin_.progress(), Status::kOk);
    deliver(1), deliver(2);
    write_join_record({0, 1, {}});
    EXPECT_EQ(peer_says(ControlOp::kJoin, 0, 1), Status::kOk);
    rails_.prefer(1);
    EXPECT_EQ(rejoin_.progress(), Status::kOk);
    ASSERT_GT(rails_[1].queue.queued(), 0u);
  }
};

// This end is not connected in the next try, when the message of the last one is lost.
TEST_F(ThreeRailsTest, ALostMessageOfAnEarlierTryIsNotRepeatedForTheNewOne) {
  join_until_connected();
  rails_.prefer(2);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 1), Status::kOk);
  deliver(2);
  pass(120);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  ASSERT_EQ(rails_[0].life.state(), RailState::kJoining);
  ASSERT_EQ(rails_[0].life.epoch(), 2u);
  deliver(2);
  EXPECT_EQ(die(1), Status::kOk);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  EXPECT_THAT(deliver(2), testing::Not(testing::Contains(ControlOp::kJoined)));
}

TEST_F(ThreeRailsTest, AJoinedThatIsLostWithItsRailIsRepeated) {
  join_until_connected();
  EXPECT_EQ(die(1), Status::kOk);
  EXPECT_EQ(rejoin_.progress(), Status::kOk);
  EXPECT_THAT(deliver(2), testing::Contains(ControlOp::kJoined));
}

TEST_F(LinkPartsTest, ANewLifeHasNoSignsOfTheLastOne) {
  liveness_.probe(0, RailLiveness::Probe::kAsk);
  liveness_.answer(0);
  EXPECT_TRUE(rails_[0].signs.probing() && rails_[0].signs.answering());
  EXPECT_EQ(die(0), Status::kOk);
  EXPECT_EQ(peer_says(ControlOp::kFenceNotice, 0, 0), Status::kOk);
  rails_[0].life.begin_try();
  rails_.set_up(0);
  EXPECT_FALSE(rails_[0].signs.probing() || rails_[0].signs.answering());
  EXPECT_FALSE(rails_[0].signs.asked_within(seconds_to_ns(60), rails_.clock().polled_ns));
}

TEST_F(LinkPartsTest, APeerThatConfirmsNoControlWorkFailsTheLink) {
  for (uint32_t i = 0; i < kControlRoom; ++i) rails_.submit_control(0, {ControlOp::kRetry, i});
  EXPECT_EQ(context_.status(), Status::kOk);
  rails_.submit_control(0, {ControlOp::kRetry, 0});
  EXPECT_EQ(context_.status(), Status::kRemote);
  EXPECT_THAT(context_.failure().what, testing::HasSubstr("confirms none of"));
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
