// The poller of a verbs rail: completion queues that many channels share.
#include <poll.h>

#include <thread>

#include "test/verbs/support.h"
#include "transports/sleeper.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kLongNs = 60'000'000'000;

std::unique_ptr<Poller> poller_of(Rail& rail) {
  auto poller = rail.open_poller();
  EXPECT_TRUE(poller) << poller.error().what;
  return poller ? std::move(*poller) : nullptr;
}

// Connected pairs of channels, whose tags are their places here. The right ends are on a poller.
struct Crowd {
  explicit Crowd(size_t count, uint32_t depth, const FakeVerbsOptions& options = {})
      : world(verbs_settings(), options), poller(poller_of(*world.right)) {
    for (uint64_t tag = 0; tag < count; ++tag) add(tag, depth);
  }
  void add(uint64_t tag, uint32_t depth) {
    auto left = world.left->open_channel({.active = true, .first = true, .depth = depth});
    auto right = world.right->open_channel({.depth = depth, .poller = poller.get(), .tag = tag});
    ASSERT_TRUE(left) << left.error().what;
    ASSERT_TRUE(right) << right.error().what;
    TestPair pair(world, std::move(*left), std::move(*right));
    ASSERT_TRUE(pair.connect());
    pairs.push_back(std::move(pair));
  }
  uint64_t polls() const { return world.nics.counts(1).polls; }
  std::vector<uint64_t> names(size_t room = 64) {
    std::vector<uint64_t> tags(room);
    tags.resize(poller->poll(tags));
    return tags;
  }
  // Something arrives at the right end of this pair.
  void arrive(size_t pair, int works = 1) {
    for (int i = 0; i < works; ++i) ASSERT_EQ(post_one(*pairs[pair].left, Work{}), Status::kOk);
    world.settle();
  }
  // Returns how many works have arrived there; the left end forgets its own.
  size_t take(size_t pair) {
    Status status = Status::kOk;
    (void)poll_all(*pairs[pair].left, &status);
    return poll_all(*pairs[pair].right, &status).size();
  }

  TestNics world;
  std::unique_ptr<Poller> poller;
  std::vector<TestPair> pairs;
};

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

TEST(VerbsPoller, SaysWhenTheNicHasNoQueueForAChannel) {
  Crowd crowd(0, 8);
  crowd.world.nics.limit_queues(100);
  auto fits = crowd.world.right->open_channel({.depth = 8, .poller = crowd.poller.get()});
  EXPECT_TRUE(fits) << fits.error().what;
  auto refused = crowd.world.right->open_channel({.depth = 256, .poller = crowd.poller.get()});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("ibv_create_cq for 1348 completions failed"));
}

// The channels find out one by one, and those that are opened later get another queue.
TEST(VerbsPoller, NamesEachChannelWhenItsQueueCannotBeRead) {
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

TEST(VerbsPoller, NamesEachChannelWhenItCannotBeSleptOn) {
  Crowd crowd(2, 8);
  ASSERT_EQ(crowd.pairs.size(), 2U);
  for (TestPair& pair : crowd.pairs) ASSERT_EQ(pair.right->arm(), Status::kOk);
  crowd.world.nics.fail_event_requests(EIO);
  EXPECT_FALSE(crowd.poller->prepare_to_sleep());
  EXPECT_THAT(crowd.names(), ElementsAre(0U, 1U));
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*crowd.pairs[0].right, &status), IsEmpty());
  EXPECT_EQ(status, Status::kSystem);
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
