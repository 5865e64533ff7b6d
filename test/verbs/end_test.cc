// How verbs channels end: what they say to the peer, and that nothing is left of them.
#include <array>

#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

class VerbsEnd : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(QueuePairs, VerbsEnd, testing::Values(1, 2, 6));

TEST_P(VerbsEnd, AChannelThatClosesSaysSo) {
  TestNics world(verbs_settings(GetParam()));
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  const uint64_t before = world.nics.counts(0).sends;
  pair.left.reset();
  EXPECT_EQ(world.nics.counts(0).sends - before, static_cast<uint64_t>(GetParam()));
  for (int i = 1; i < GetParam(); ++i) {
    ASSERT_TRUE(world.nics.step());
    Status status = Status::kOk;
    poll_all(*pair.right, &status);
    EXPECT_EQ(status, Status::kOk) << "works may still come on the other queue pairs";
  }
  const Error error = failure_of(world, *pair.right);
  EXPECT_EQ(error.status, Status::kRemote);
  EXPECT_THAT(error.what, HasSubstr("rail fake1 (qp 0x"));
  EXPECT_THAT(error.what, HasSubstr("to ::ffff:10.77.0.1 (qp 0x"));
  EXPECT_THAT(error.what, HasSubstr("the peer closed the channel; its process ended"));
  EXPECT_EQ(count_closing(*world.left), 0u);
}

TEST_P(VerbsEnd, WhatWasSentBeforeIsReportedBeforeTheEnd) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    FakeVerbsOptions options;
    options.seed = seed;
    TestNics world(verbs_settings(GetParam()), options);
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    for (int i = 0; i < 200; ++i) ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
    world.settle();
    pair.left.reset();  // it has not polled
    world.settle();
    Status status = Status::kOk;
    EXPECT_EQ(poll_all(*pair.right, &status).size(), 200u) << seed;
    EXPECT_THAT(failure_of(world, *pair.right).what, HasSubstr("the peer closed the channel"));
  }
}

// The left end is connected, and closes before the right one has seen that.
void close_after_set_up(TestNics& world, TestPair& pair) {
  const ChannelAddress left = pair.left->address(), right = pair.right->address();
  ASSERT_EQ(pair.left->connect(right), Status::kAgain);
  ASSERT_EQ(pair.right->connect(left), Status::kAgain);
  world.settle();
  ASSERT_EQ(pair.left->connect(right), Status::kOk);
  pair.left.reset();
}

// Its hello is still on its way then, and its close messages may overtake it on the other lanes.
TEST_P(VerbsEnd, APeerThatClosesRightAfterSetUpIsConnectedAndThenNamed) {
  const int most = GetParam() + 2;  // more than its hello and its close messages
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    FakeVerbsOptions options;
    options.seed = seed;
    TestNics world(verbs_settings(GetParam()), options);
    TestPair pair(world);
    const ChannelAddress left = pair.left->address();
    ASSERT_NO_FATAL_FAILURE(close_after_set_up(world, pair));
    Status status = Status::kAgain;
    for (int moved = 0; status == Status::kAgain && moved <= most; ++moved) {
      status = pair.right->connect(left);
      (void)world.nics.step();
    }
    ASSERT_EQ(status, Status::kOk) << pair.right->failure().what;
    const Error error = failure_of(world, *pair.right);
    EXPECT_EQ(error.status, Status::kRemote);
    EXPECT_THAT(error.what, HasSubstr("the peer closed the channel; its process ended"));
  }
}

TEST_P(VerbsEnd, AllOfAClosingPeerMayBeThereBeforeConnectIsCalledAgain) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    FakeVerbsOptions options;
    options.seed = seed;
    TestNics world(verbs_settings(GetParam()), options);
    TestPair pair(world);
    const ChannelAddress left = pair.left->address();
    ASSERT_NO_FATAL_FAILURE(close_after_set_up(world, pair));
    world.settle();
    EXPECT_EQ(count_closing(*world.left), 0u) << "its queue pairs are gone";
    ASSERT_EQ(pair.right->connect(left), Status::kOk) << pair.right->failure().what;
    EXPECT_THAT(failure_of(world, *pair.right).what, HasSubstr("the peer closed the channel; "));
  }
}

// Their memory may be used for something else at once: the queue pairs end with the channel.
TEST_P(VerbsEnd, WithWorksUnderWayNothingIsSaid) {
  TestNics world(verbs_settings(GetParam()));
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer from(*world.left, 4'096, 1), to(*world.right, 4'096, 2);
  ASSERT_EQ(post_one(*pair.left, work_of(from, to, 4'096)), Status::kOk);
  const uint64_t before = world.nics.counts(0).sends;
  const size_t objects = world.nics.objects();
  pair.left.reset();
  EXPECT_EQ(world.nics.counts(0).sends, before);
  EXPECT_EQ(count_closing(*world.left), 0u);
  EXPECT_EQ(world.nics.objects(), objects - static_cast<size_t>(GetParam()) - 2);
  EXPECT_FALSE(world.nics.step());
  EXPECT_EQ(to.bytes(), std::vector(4'096, std::byte{2}));
  Status status = Status::kOk;
  EXPECT_TRUE(poll_all(*pair.right, &status).empty());
  EXPECT_EQ(status, Status::kOk);
}

TEST(VerbsEnd, AChannelThatWasNotReadySaysNothing) {
  TestNics world;
  TestPair pair(world);
  ASSERT_EQ(pair.right->connect(pair.left->address()), Status::kAgain);
  const uint64_t before = world.nics.counts(1).sends;
  pair.left.reset();
  pair.right.reset();
  EXPECT_EQ(world.nics.counts(1).sends, before);
  EXPECT_EQ(count_closing(*world.left) + count_closing(*world.right), 0u);
}

TEST(VerbsEnd, AFencedChannelSaysNothing) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  pair.left->fence();
  pair.left.reset();
  EXPECT_EQ(count_closing(*world.left), 0u);
}

TEST(VerbsEnd, ACloseMessageToNobodyEndsWithTheNicsTimeOut) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  const size_t before = world.nics.objects();
  const uint64_t sends = world.nics.counts(0).sends;
  world.nics.set_link(1, false);
  pair.left.reset();
  EXPECT_EQ(world.nics.counts(0).sends - sends, 1u);
  EXPECT_TRUE(eventually([&] {
    world.settle();
    return count_closing(*world.left) == 0;
  }));
  EXPECT_EQ(world.nics.objects(), before - 3) << "queue pair, completion queue, buffer";
}

TEST(VerbsEnd, NoMoreThanSoManyAreClosing) {
  constexpr size_t kMore = ClosingQueue<ClosingPairs>::kCapacity + 20;
  TestNics world;
  std::vector<TestPair> pairs;
  pairs.reserve(kMore);
  for (size_t i = 0; i < kMore; ++i) ASSERT_TRUE(pairs.emplace_back(world).connect());
  for (TestPair& pair : pairs) {
    pair.left.reset();
    ASSERT_LE(count_closing(*world.left), ClosingQueue<ClosingPairs>::kCapacity);
  }
  world.settle();
  EXPECT_EQ(count_closing(*world.left), 0u);
}

TEST(VerbsEnd, TheRailMayEndBeforeItsCloseMessagesHaveArrived) {
  FakeVerbs nics;
  Settings settings = verbs_settings();
  auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings, nullptr);
  ASSERT_TRUE(rails);
  const auto left = open_channel(*(*rails)[0], true);
  auto right = open_channel(*(*rails)[1], false);
  left->connect(right->address());
  right->connect(left->address());
  while (nics.step()) continue;
  ASSERT_EQ(left->connect(right->address()), Status::kOk);
  while (nics.step()) continue;
  ASSERT_EQ(right->connect(left->address()), Status::kOk);
  right.reset();
  (*rails)[1].reset();  // nothing moves meanwhile
  EXPECT_THAT(nics.violations(), IsEmpty());
}

// In each state that a channel can be in.
TEST_P(VerbsEnd, NothingIsLeft) {
  TestNics world(verbs_settings(GetParam()));
  const size_t before = world.nics.objects();
  const std::array<std::function<void(TestPair&)>, 6> states = {
      [](TestPair&) {},
      [](TestPair& pair) { pair.left->connect(pair.right->address()); },
      [](TestPair& pair) { pair.connect(); },
      [](TestPair& pair) {
        pair.connect();
        pair.world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
        EXPECT_EQ(post_one(*pair.left, Work()), Status::kOk);
        failure_of(pair.world, *pair.left);
      },
      [](TestPair& pair) { EXPECT_EQ(pair.left->connect({}), Status::kRemote); },
      [](TestPair& pair) {
        pair.connect();
        pair.left->fence();
        pair.right->fence();
      },
  };
  for (size_t i = 0; i < states.size(); ++i) {
    SCOPED_TRACE(i);
    {
      TestPair pair(world);
      states[i](pair);
      EXPECT_GT(world.nics.objects(), before);
    }
    EXPECT_TRUE(eventually([&] {
      world.settle();
      return count_closing(*world.left) + count_closing(*world.right) == 0;
    }));
    EXPECT_EQ(world.nics.objects(), before);
  }
}

}  // namespace
}  // namespace slime::verbs
