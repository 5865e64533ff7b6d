// The poller of a verbs rail: completion queues that many channels share.
#include <poll.h>

#include <thread>

#include "test/verbs/crowd.h"
#include "transports/sleeper.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kLongNs = 60'000'000'000;

TEST(VerbsPoller, AThousandIdleChannelsCostOneEmptyPoll) {
  constexpr size_t kChannels = 1000;
  Crowd crowd(kChannels, 4);
  ASSERT_EQ(crowd.pairs.size(), kChannels);
  for (TestPair& pair : crowd.pairs) ASSERT_EQ(pair.right->arm(), Status::kOk);
  EXPECT_THAT(crowd.names(), IsEmpty());
  const uint64_t before = crowd.polls();
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_EQ(crowd.polls() - before, 1U);
  ASSERT_EQ(post_one(*crowd.pairs[777].left, Work{}), Status::kOk);
  crowd.world.settle();
  EXPECT_THAT(crowd.names(), ElementsAre(777U));
}

TEST(VerbsPoller, TakesAnotherQueueWhenOneIsAsLongAsTheNicLetsItBe) {
  Crowd crowd(30, 0);
  ASSERT_EQ(crowd.pairs.size(), 30U);
  const uint64_t before = crowd.polls();
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_EQ(crowd.polls() - before, 2U);
  for (TestPair& pair : crowd.pairs) {
    ASSERT_EQ(pair.right->arm(), Status::kOk);
    ASSERT_EQ(post_one(*pair.left, Work{}), Status::kOk);
  }
  crowd.world.settle();
  EXPECT_THAT(crowd.names(), SizeIs(30));
}

TEST(VerbsPoller, AChannelHandsOutWhatIsNotItsOwn) {
  Crowd crowd(2, 8);
  ASSERT_EQ(crowd.pairs.size(), 2U);
  ASSERT_EQ(crowd.pairs[1].right->arm(), Status::kOk);
  for (TestPair& pair : crowd.pairs) ASSERT_EQ(post_one(*pair.left, Work{}), Status::kOk);
  crowd.world.settle();
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*crowd.pairs[0].right, &status), SizeIs(1));
  EXPECT_THAT(crowd.names(), ElementsAre(1U)) << "the other one has read the queue";
  EXPECT_EQ(crowd.pairs[1].right->arm(), Status::kAgain);
  EXPECT_THAT(poll_all(*crowd.pairs[1].right, &status), SizeIs(1));
  EXPECT_EQ(crowd.pairs[1].right->arm(), Status::kOk);
}

// The place of a channel that ended with works under way is taken by another.
TEST(VerbsPoller, ANewChannelGetsNothingOfAnEarlierOne) {
  for (const bool keeps : {false, true}) {
    FakeVerbsOptions options;
    options.keeps_completions = keeps;
    Crowd crowd(1, 8, options);
    ASSERT_EQ(crowd.pairs.size(), 1U);
    TestBuffer from(*crowd.world.left, 4096), to(*crowd.world.right, 4096);
    for (int round = 0; round < 20; ++round) {
      TestPair& old = crowd.pairs.back();
      for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(post_one(*old.left, work_of(from, to, 64)), Status::kOk);
        ASSERT_EQ(post_one(*old.right, work_of(to, from, 64)), Status::kOk);
      }
      for (int i = 0; i < round % 5; ++i) (void)crowd.world.nics.step();
      crowd.pairs.clear();
      ASSERT_NO_FATAL_FAILURE(crowd.add(1, 8));
      TestPair& young = crowd.pairs.back();
      Status status = Status::kOk;
      EXPECT_THAT(poll_all(*young.right, &status), IsEmpty());
      EXPECT_EQ(status, Status::kOk);
    }
  }
}

// Its channel has been destroyed with completions in the queue that nobody had read.
TEST(VerbsPoller, APlaceThatIsTakenAgainIsEmpty) {
  Crowd crowd(1, 8, keeping_completions());
  ASSERT_EQ(crowd.pairs.size(), 1U);
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(0, 4));
  Work bad;
  bad.length = 1;
  size_t taken = 0;
  ASSERT_NE(crowd.pairs[0].right->post({&bad, 1}, &taken), Status::kOk);
  crowd.pairs.clear();
  ASSERT_NO_FATAL_FAILURE(crowd.add(0, 8));
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*crowd.pairs[0].right, &status), IsEmpty());
  EXPECT_EQ(status, Status::kOk);
}

TEST(VerbsPoller, WhatChannelsHadIsFreeAgainWhenTheyEnd) {
  Crowd crowd(0, 8);
  for (int i = 0; i < 400; ++i) {
    auto channel = crowd.world.right->open_channel({.depth = 256, .poller = crowd.poller.get()});
    ASSERT_TRUE(channel) << channel.error().what;
  }
  const uint64_t before = crowd.polls();
  EXPECT_THAT(crowd.names(), IsEmpty());
  EXPECT_EQ(crowd.polls() - before, 1U) << "completion queues";
}

// What poll() has no room for is in the channel, and its NIC tells nobody of it.
TEST(VerbsPoller, IsNotArmedByAChannelThatHasSomething) {
  Crowd crowd(1, 8);
  ASSERT_EQ(crowd.pairs.size(), 1U);
  Channel& channel = *crowd.pairs[0].right;
  TestBuffer from(*crowd.world.right, 64), to(*crowd.world.left, 64);
  const std::vector<Work> works(3, work_of(from, to, 64));
  size_t taken = 0;
  ASSERT_EQ(channel.post(works, &taken), Status::kOk);
  crowd.world.settle();
  Status status = Status::kOk;
  EXPECT_THAT(poll_once(channel, &status, 1), SizeIs(1));
  EXPECT_EQ(channel.arm(), Status::kAgain) << "two are kSent";
  EXPECT_THAT(poll_all(channel, &status), SizeIs(2));
  EXPECT_EQ(channel.arm(), Status::kOk);
  Work bad;
  bad.length = 1;
  ASSERT_NE(channel.post({&bad, 1}, &taken), Status::kOk);
  EXPECT_EQ(channel.arm(), Status::kAgain) << "a failure is to be reported";
}

TEST(VerbsPoller, DoesNotNameAFencedChannel) {
  Crowd crowd(1, 8);
  ASSERT_EQ(crowd.pairs.size(), 1U);
  ASSERT_EQ(crowd.pairs[0].right->arm(), Status::kOk);
  crowd.pairs[0].right->fence();
  EXPECT_THAT(crowd.names(), IsEmpty());
}

// A read of the queue gets 64 at a time, which may all be of others.
TEST(VerbsPoller, AChannelThatFailsReportsWhatArrivedBehindOthers) {
  Crowd crowd(2, 256);
  ASSERT_EQ(crowd.pairs.size(), 2U);
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(0, 200));
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(1, 3));
  Work bad;
  bad.length = 1;
  size_t taken = 0;
  Channel& failing = *crowd.pairs[1].right;
  ASSERT_NE(failing.post({&bad, 1}, &taken), Status::kOk);
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(failing, &status), SizeIs(3));
}

TEST(VerbsPoller, AChannelClosesWellThoughOthersHaveReadSomeOfItsCompletions) {
  Crowd crowd(2, 8);
  ASSERT_EQ(crowd.pairs.size(), 2U);
  TestPair& pair = crowd.pairs[1];
  ASSERT_EQ(post_one(*pair.right, Work{}), Status::kOk);
  crowd.world.settle();
  EXPECT_THAT(crowd.names(), IsEmpty()) << "it is not armed";
  ASSERT_EQ(post_one(*pair.right, Work{}), Status::kOk);
  crowd.world.settle();
  pair.right = nullptr;
  crowd.world.settle();
  Status status = Status::kOk;
  (void)poll_all(*pair.left, &status);
  EXPECT_EQ(status, Status::kRemote) << "its peer is told";
}

TEST(VerbsPoller, NamesAChannelOnceHoweverOftenItWasArmed) {
  Crowd crowd(1, 8);
  ASSERT_EQ(crowd.pairs.size(), 1U);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(crowd.pairs[0].right->arm(), Status::kOk);
    ASSERT_NO_FATAL_FAILURE(crowd.arrive(0));
    ASSERT_EQ(crowd.take(0), 1U);
  }
  EXPECT_LE(crowd.names().size(), 1U);
}

TEST(VerbsPoller, GivesEachQueueItsTurn) {
  Crowd crowd(30, 0);
  ASSERT_EQ(crowd.pairs.size(), 30U);
  for (const size_t pair : {0, 1, 29}) {
    ASSERT_EQ(crowd.pairs[pair].right->arm(), Status::kOk);
    ASSERT_NO_FATAL_FAILURE(crowd.arrive(pair));
  }
  std::vector<uint64_t> named;
  for (int i = 0; i < 10; ++i) {
    for (const uint64_t tag : crowd.names(1)) {
      named.push_back(tag);
      (void)crowd.take(tag);
      ASSERT_EQ(crowd.pairs[tag].right->arm(), Status::kOk);
      ASSERT_NO_FATAL_FAILURE(crowd.arrive(tag));
    }
  }
  EXPECT_THAT(named, testing::Contains(29U)) << "of the second queue";
}

// The descriptor is readable when something comes, also of a queue that was opened meanwhile.
TEST(VerbsPoller, AnnouncesWhatComesWhileAThreadSleeps) {
  Crowd crowd(0, 8);
  const auto is_readable = [&] {
    pollfd descriptor{crowd.poller->descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 0) == 1;
  };
  EXPECT_TRUE(crowd.poller->prepare_to_sleep());
  ASSERT_NO_FATAL_FAILURE(crowd.add(0, 8));
  EXPECT_TRUE(is_readable()) << "the set-up of the first channel";
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(crowd.pairs[0].right->arm(), Status::kOk);
    EXPECT_TRUE(crowd.poller->prepare_to_sleep());
    EXPECT_FALSE(is_readable());
    ASSERT_NO_FATAL_FAILURE(crowd.arrive(0));
    EXPECT_TRUE(is_readable());
    EXPECT_FALSE(crowd.poller->prepare_to_sleep()) << "it has a name to give";
    EXPECT_THAT(crowd.names(), ElementsAre(0U));
    EXPECT_EQ(crowd.take(0), 1U);
  }
  ASSERT_NO_FATAL_FAILURE(crowd.arrive(0));  // an event that nobody reads
}

TEST(VerbsPoller, AThreadSleepsUntilAChannelHasSomething) {
  Crowd crowd(3, 8);
  ASSERT_EQ(crowd.pairs.size(), 3U);
  auto sleeper = std::move(*Sleeper::open());
  ASSERT_TRUE(sleeper->add(*crowd.poller));
  for (int round = 0; round < 50; ++round) {
    for (TestPair& pair : crowd.pairs) ASSERT_EQ(pair.right->arm(), Status::kOk);
    std::vector<uint64_t> named;
    std::thread sleeping([&] {
      while ((named = crowd.names()).empty()) sleeper->wait(kLongNs);
    });
    ASSERT_EQ(post_one(*crowd.pairs[2].left, Work{}), Status::kOk);
    crowd.world.settle();
    sleeping.join();
    EXPECT_THAT(named, ElementsAre(2U));
    Status status = Status::kOk;
    EXPECT_THAT(poll_all(*crowd.pairs[2].right, &status), SizeIs(1));
    EXPECT_THAT(poll_all(*crowd.pairs[2].left, &status), SizeIs(1));
  }
}

}  // namespace
}  // namespace slime::verbs
