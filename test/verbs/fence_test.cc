// What a verbs channel does with what is left: of a chain that its NIC refuses in the middle, and
// of its receives when it is fenced.
#include <algorithm>
#include <cerrno>

#include "test/verbs/support.h"
#include "transports/verbs/lanes.h"

namespace slime::verbs {
namespace {

class VerbsFence : public testing::TestWithParam<int> {
 protected:
  TestNics world{verbs_settings(GetParam())};
  TestPair pair{world};

  // Each poll takes 64 completions at most.
  uint64_t polls_of_all_receives() const {
    return static_cast<uint64_t>(GetParam()) * kReceives / 64 + 1;
  }
  // A fence that misses a completion polls until its time is up.
  void expect_a_short_fence(Channel& channel, size_t device) {
    const uint64_t before = world.nics.counts(device).polls;
    channel.fence();
    EXPECT_LE(world.nics.counts(device).polls - before, polls_of_all_receives());
  }
};
INSTANTIATE_TEST_SUITE_P(QueuePairs, VerbsFence, testing::Values(1, 2, 6));

std::vector<uint64_t> sent_of(const std::vector<Done>& done) {
  std::vector<uint64_t> cookies;
  for (const Done& each : done) {
    if (each.kind == Done::Kind::kSent) cookies.push_back(each.cookie);
  }
  return cookies;
}

std::vector<Work> chain_of(uint32_t works) {
  std::vector<Work> chain(works);
  for (uint32_t i = 0; i < works; ++i) chain[i].cookie = 1'000 + i;
  return chain;
}

// The NIC has taken the first part of the chain and carries it out.
void expect_none_of_a_refused_chain(int lanes, uint32_t before, uint32_t taken_by_nic) {
  SCOPED_TRACE(testing::Message() << before << " works before, then a chain of 64 of which "
                                  << taken_by_nic << " are taken");
  TestNics world(verbs_settings(lanes));
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  for (uint32_t i = 0; i < before; ++i) {
    Work work;
    work.cookie = i;
    ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
  }
  world.nics.fail_sends(taken_by_nic, EIO);
  size_t taken = 9;
  ASSERT_EQ(pair.left->post(chain_of(64), &taken), Status::kSystem);
  EXPECT_EQ(taken, taken_by_nic);
  EXPECT_THAT(pair.left->failure().what, HasSubstr("ibv_post_send of 64 works failed"));
  world.settle();
  Status status = Status::kOk;
  std::vector<uint64_t> sent = sent_of(poll_all(*pair.left, &status));
  std::ranges::sort(sent);
  std::vector<uint64_t> expected(before);
  for (uint32_t i = 0; i < before; ++i) expected[i] = i;
  EXPECT_EQ(sent, expected);
  EXPECT_EQ(failure_of(world, *pair.left).code, EIO);
  EXPECT_EQ(poll_all(*pair.right, &status).size(), before + taken_by_nic);
  EXPECT_EQ(status, Status::kOk) << "it has heard nothing of that";
  EXPECT_EQ(pair.left->post(chain_of(1), &taken), Status::kSystem) << "it stays so";
  pair.left->fence();
  EXPECT_THAT(poll_all(*pair.left, &status), IsEmpty());
}

TEST(VerbsChain, NoReadOfAPostThatFailedIsRefused) {
  TestNics world;
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  TestBuffer here(*world.left, 4096), there(*world.right, 4096, 2, kRemoteRead);
  std::vector<Work> works(4, work_of(here, there, 64, 0, 500));
  for (Work& work : works) work.opcode = Opcode::kRead;
  works[1].remote_key ^= 1;
  world.nics.fail_sends(2, EIO);
  size_t taken = 9;
  ASSERT_EQ(pair.left->post(works, &taken), Status::kSystem);
  EXPECT_EQ(taken, 2U);
  world.settle();
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*pair.left, &status), IsEmpty());
}

TEST(VerbsChain, NoneOfAChainThatTheNicRefusesInTheMiddleIsSent) {
  for (const int lanes : {1, 2, 6}) {
    SCOPED_TRACE(lanes);
    for (const uint32_t before : {0u, 1u, 7u, 192u}) {
      for (const uint32_t taken_by_nic : {1u, 31u, 32u, 33u, 63u}) {
        expect_none_of_a_refused_chain(lanes, before, taken_by_nic);
      }
    }
  }
}

TEST_P(VerbsFence, OfARefusedChainNothingIsReportedThoughItIsFencedAtOnce) {
  ASSERT_TRUE(pair.connect());
  world.nics.fail_sends(40, EIO);
  size_t taken = 9;
  ASSERT_EQ(pair.left->post(chain_of(64), &taken), Status::kSystem);
  world.settle();
  expect_a_short_fence(*pair.left, 0);
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*pair.left, &status), IsEmpty());
}

TEST_P(VerbsFence, OfAReadyChannel) {
  ASSERT_TRUE(pair.connect());
  expect_a_short_fence(*pair.left, 0);
  expect_a_short_fence(*pair.right, 1);
}

TEST_P(VerbsFence, BeforeAndWhileItConnects) {
  expect_a_short_fence(*pair.left, 0);
  ASSERT_EQ(pair.right->connect(pair.left->address()), Status::kAgain);
  expect_a_short_fence(*pair.right, 1);
}

TEST_P(VerbsFence, AfterThePeerHasClosed) {
  ASSERT_TRUE(pair.connect());
  pair.left.reset();
  EXPECT_THAT(failure_of(world, *pair.right).what, HasSubstr("the peer closed the channel"));
  expect_a_short_fence(*pair.right, 1);
}

// Some of what was flushed has been polled by then.
TEST_P(VerbsFence, AfterAFailure) {
  ASSERT_TRUE(pair.connect());
  world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
  world.settle();
  Status status = Status::kOk;
  (void)poll_once(*pair.left, &status, 100);
  expect_a_short_fence(*pair.left, 0);
}

TEST_P(VerbsFence, AfterAFailureThatHasBeenPolled) {
  ASSERT_TRUE(pair.connect());
  world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
  EXPECT_EQ(failure_of(world, *pair.left).code, IBV_WC_RETRY_EXC_ERR);
  expect_a_short_fence(*pair.left, 0);
}

// Each arrival takes a receive, and 64 of them come back together.
TEST_P(VerbsFence, WithArrivalsPolledAndNot) {
  ASSERT_TRUE(pair.connect());
  Status status = Status::kOk;
  for (uint32_t i = 0; i < 700; ++i) {
    ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
    world.settle();
    (void)poll_all(*pair.left, &status);
    if (i < 500) (void)poll_all(*pair.right, &status);
  }
  expect_a_short_fence(*pair.right, 1);
  EXPECT_EQ(poll_all(*pair.right, &status).size(), 200u);
}

// The peer's bad work on the second lane is faster than its hello on the first.
TEST(VerbsFence, AfterALaneHasFailedDuringSetUp) {
  int failed = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    FakeVerbsOptions options;
    options.seed = seed;
    TestNics world(verbs_settings(2), options);
    TestPair pair(world);
    ASSERT_EQ(pair.left->connect(pair.right->address()), Status::kAgain);
    ASSERT_EQ(pair.right->connect(pair.left->address()), Status::kAgain);
    world.settle();
    ASSERT_EQ(pair.left->connect(pair.right->address()), Status::kOk);
    TestBuffer from(*world.left, 4'096), to(*world.right, 4'096);
    Work bad = work_of(from, to, 4'096);
    bad.remote_key ^= 0x40000000;
    ASSERT_EQ(post_one(*pair.left, Work()), Status::kOk);
    ASSERT_EQ(post_one(*pair.left, bad), Status::kOk);
    world.settle();
    failed += pair.right->connect(pair.left->address()) == Status::kRemote;
    const uint64_t before = world.nics.counts(1).polls;
    pair.right->fence();
    EXPECT_LE(world.nics.counts(1).polls - before, 2 * kReceives / 64 + 1) << seed;
  }
  EXPECT_GT(failed, 0) << "no seed has made what this is about";
}

}  // namespace
}  // namespace slime::verbs
