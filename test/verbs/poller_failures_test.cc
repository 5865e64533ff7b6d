// The poller of a verbs rail whose NIC refuses what it is asked for.
#include "test/verbs/crowd.h"

namespace slime::verbs {
namespace {

// A queue pair that the NIC does not destroy still takes what its peer writes.
TEST(VerbsPollerFailures, ANewChannelGetsNothingOfAQueuePairThatCouldNotBeDestroyed) {
  Crowd crowd(1, 8);
  ASSERT_EQ(crowd.pairs.size(), 1U);
  TestBuffer from(*crowd.world.left, 64), to(*crowd.world.right, 64);
  ASSERT_EQ(post_one(*crowd.pairs[0].right, work_of(to, from, 64)), Status::kOk);
  crowd.world.nics.fail_destroys(EIO);
  crowd.pairs[0].right = nullptr;  // at once, as a work is under way
  ASSERT_NO_FATAL_FAILURE(crowd.add(1, 8));
  ASSERT_EQ(crowd.pairs[1].right->arm(), Status::kOk);
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(0, 3));
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_EQ(crowd.take(1), 0U);
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(1));
  EXPECT_EQ(crowd.take(1), 1U);
  crowd.world.nics.fail_destroys(0);
}

// Only its own place is lost.
TEST(VerbsPollerFailures, AQueuePairThatCouldNotBeDestroyedCostsOthersNothing) {
  Crowd crowd(1, 8);
  std::vector<std::unique_ptr<Channel>> channels;
  const auto open_many = [&] {
    for (int i = 0; i < 40; ++i) {
      auto channel = crowd.world.right->open_channel({.depth = 256, .poller = crowd.poller.get()});
      ASSERT_TRUE(channel) << channel.error().what;
      channels.push_back(std::move(*channel));
    }
  };
  ASSERT_NO_FATAL_FAILURE(open_many());
  crowd.world.nics.fail_destroys(EIO);
  channels.pop_back();
  crowd.world.nics.fail_destroys(0);
  channels.clear();
  ASSERT_NO_FATAL_FAILURE(open_many());
  const uint64_t before = crowd.polls();
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_EQ(crowd.polls() - before, 2U) << "completion queues, for 53,920 of their places";
}

// Each queue is twice as long as the one before, so few are read.
TEST(VerbsPollerFailures, TakesLongerQueuesWhereTheyDoNotGrow) {
  Crowd crowd(0, 0);
  crowd.world.nics.fail_resizes(EOPNOTSUPP);
  for (uint64_t tag = 0; tag < 100; ++tag) ASSERT_NO_FATAL_FAILURE(crowd.add(tag, 0));
  for (TestPair& pair : crowd.pairs) ASSERT_EQ(pair.right->arm(), Status::kOk);
  const uint64_t before = crowd.polls();
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_LE(crowd.polls() - before, 12U) << "of 135,000 places in all, and 32,767 at most";
}

TEST(VerbsPollerFailures, SaysWhenTheNicHasNoQueueForAChannel) {
  Crowd crowd(0, 8);
  crowd.world.nics.limit_queues(100);
  auto fits = crowd.world.right->open_channel({.depth = 8, .poller = crowd.poller.get()});
  EXPECT_TRUE(fits) << fits.error().what;
  auto refused = crowd.world.right->open_channel({.depth = 256, .poller = crowd.poller.get()});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("ibv_create_cq for 1348 completions failed"));
}

// The channels find out one by one, and those that are opened later get another queue.
TEST(VerbsPollerFailures, NamesEachChannelWhenItsQueueCannotBeRead) {
  Crowd crowd(2, 8);
  ASSERT_EQ(crowd.pairs.size(), 2U);
  for (TestPair& pair : crowd.pairs) ASSERT_EQ(pair.right->arm(), Status::kOk);
  crowd.world.nics.fail_polls(EIO);
  EXPECT_THAT(crowd.names(), ElementsAre(0U, 1U));
  crowd.world.nics.fail_polls(0);
  for (TestPair& pair : crowd.pairs) {
    EXPECT_EQ(pair.right->arm(), Status::kAgain) << "its poll() has a failure to report";
    Status status = Status::kOk;
    EXPECT_THAT(poll_all(*pair.right, &status), IsEmpty());
    EXPECT_EQ(status, Status::kSystem);
    EXPECT_THAT(pair.right->failure().what, HasSubstr("ibv_poll_cq failed"));
  }
  ASSERT_NO_FATAL_FAILURE(crowd.add(2, 8));
  ASSERT_EQ(crowd.pairs[2].right->arm(), Status::kOk);
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(2));
  EXPECT_THAT(crowd.names(), ElementsAre(2U));
}

TEST(VerbsPollerFailures, QueuesThatCannotBeReadEndWithTheirChannels) {
  Crowd crowd(0, 8);
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(crowd.add(0, 8));
    crowd.world.nics.fail_polls(EIO);
    EXPECT_THAT(crowd.names(), IsEmpty());
    crowd.world.nics.fail_polls(0);
    crowd.world.nics.fail_destroys(i % 2 == 0 ? 0 : EIO);
    crowd.pairs.back().right = nullptr;
    crowd.world.nics.fail_destroys(0);
    crowd.pairs.clear();
  }
  const uint64_t before = crowd.polls();
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_LE(crowd.polls() - before, 1U);
}

// What the NIC keeps of a channel that ended meanwhile is nobody's.
TEST(VerbsPollerFailures, AQueueThatIsReadAgainHasNothingForAChannelThatEnded) {
  Crowd crowd(2, 8, keeping_completions());
  ASSERT_EQ(crowd.pairs.size(), 2U);
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(0, 4));
  crowd.world.nics.fail_polls(EIO);
  crowd.pairs[0].right->fence();
  crowd.pairs[0].right = nullptr;
  crowd.world.nics.fail_polls(0);
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_EQ(crowd.take(1), 0U);
}

TEST(VerbsPollerFailures, AFenceDoesNotWaitForAQueueThatCannotBeRead) {
  Crowd crowd(1, 8);
  ASSERT_EQ(crowd.pairs.size(), 1U);
  crowd.world.nics.fail_polls(EIO);
  const uint64_t before = crowd.polls();
  crowd.pairs[0].right->fence();
  EXPECT_LE(crowd.polls() - before, 3U);
  crowd.world.nics.fail_polls(0);
}

TEST(VerbsPollerFailures, AChannelWhoseQueueCannotBeReadDoesNotConnect) {
  Crowd crowd(0, 8);
  auto channel = crowd.world.right->open_channel({.depth = 8, .poller = crowd.poller.get()});
  auto peer = open_channel(*crowd.world.left, true);
  ASSERT_TRUE(channel && peer);
  crowd.world.nics.fail_polls(EIO);
  EXPECT_EQ((*channel)->connect(peer->address()), Status::kSystem);
  EXPECT_THAT((*channel)->failure().what, HasSubstr("ibv_poll_cq failed"));
  crowd.world.nics.fail_polls(0);
}

TEST(VerbsPollerFailures, NamesEachChannelWhenItCannotBeSleptOn) {
  Crowd crowd(2, 8);
  ASSERT_EQ(crowd.pairs.size(), 2U);
  for (TestPair& pair : crowd.pairs) ASSERT_EQ(pair.right->arm(), Status::kOk);
  crowd.world.nics.fail_event_requests(EIO);
  EXPECT_FALSE(crowd.poller->prepare_to_sleep());
  EXPECT_THAT(crowd.names(), ElementsAre(0U, 1U));
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*crowd.pairs[0].right, &status), IsEmpty());
  EXPECT_EQ(status, Status::kSystem);
  EXPECT_THAT(crowd.pairs[0].right->failure().what, HasSubstr("ibv_req_notify_cq"));
  auto another = crowd.world.right->open_channel({.depth = 8, .poller = crowd.poller.get()});
  ASSERT_FALSE(another);
  EXPECT_THAT(another.error().what, HasSubstr("ibv_req_notify_cq"));
}

}  // namespace
}  // namespace slime::verbs
