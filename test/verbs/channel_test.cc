// The data path of a verbs channel: what is posted, completed and given back.
#include "transports/verbs/lanes.h"

#include <algorithm>

#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

// One direction of a pair: works with their index as immediate and cookie.
struct Stream {
  Channel &from, &to;
  TestBuffer source, target;
  uint32_t posted = 0, sent = 0;
  std::vector<uint32_t> arrived;  // immediates, as they came

  Stream(Rail& from_rail, Channel& from_channel, Rail& to_rail, Channel& to_channel)
      : from(from_channel), to(to_channel), source(from_rail, 64), target(to_rail, 64) {}

  uint32_t post(uint32_t most) {
    std::vector<Work> works;
    for (uint32_t i = 0; i < most; ++i) {
      works.push_back(work_of(source, target, 64, posted + i, posted + i));
    }
    size_t taken = 0;
    EXPECT_EQ(from.post(works, &taken), Status::kOk) << from.failure().what;
    posted += static_cast<uint32_t>(taken);
    return static_cast<uint32_t>(taken);
  }
  bool each_arrived_once() const {
    std::vector<uint32_t> sorted = arrived;
    std::ranges::sort(sorted);
    for (uint32_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != i) return false;
    }
    return sorted.size() == posted;
  }
};

struct BothWays {
  TestNics& world;
  TestPair pair{world};
  bool connected = pair.connect();
  Stream there{*world.left, *pair.left, *world.right, *pair.right};
  Stream back{*world.right, *pair.right, *world.left, *pair.left};

  explicit BothWays(TestNics& nics) : world(nics) {}

  static void poll(Stream& out, Stream& in) {
    Status status = Status::kOk;
    for (const Done& done : poll_all(out.from, &status)) {
      if (done.kind == Done::Kind::kArrived) {
        EXPECT_EQ(done.bytes, 64u);
        in.arrived.push_back(done.immediate);
      } else {
        EXPECT_LT(done.cookie, out.posted);
        ++out.sent;
      }
    }
    EXPECT_EQ(status, Status::kOk) << out.from.failure().what;
  }
  void poll_left() { poll(there, back); }
  void poll_right() { poll(back, there); }

  void send(Stream& stream, uint32_t works, uint32_t batch) {
    for (int rounds = 0; stream.posted < works; ++rounds) {
      ASSERT_LT(rounds, 100'000);
      stream.post(std::min(batch, works - stream.posted));
      world.settle();
      poll_left();
      poll_right();
    }
  }
};

TEST(VerbsChannel, ABatchIsOneDoorbellAndFewCompletions) {
  TestNics world;
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  const FakeVerbsCounts before = world.nics.counts(0);
  both.send(both.there, 6'400, 64);
  const FakeVerbsCounts after = world.nics.counts(0);
  EXPECT_TRUE(both.there.each_arrived_once());
  EXPECT_EQ(both.there.sent, 6'400u);
  EXPECT_EQ(after.sends - before.sends, 6'400u);
  EXPECT_EQ(after.doorbells - before.doorbells, 100u);
  EXPECT_LE(after.send_completions - before.send_completions, 640u);
  EXPECT_EQ(both.pair.left->counters.doorbells.get(), 100u);
  EXPECT_EQ(both.pair.left->counters.works.get(), 6'400u);
  EXPECT_EQ(both.pair.left->counters.bytes_sent.get(), 6'400u * 64);
  EXPECT_EQ(both.pair.right->counters.arrivals.get(), 6'400u);
  EXPECT_EQ(both.pair.right->counters.bytes_received.get(), 6'400u * 64);
}

// A place of the send queue comes back with a completion only, so each batch needs one.
TEST(VerbsChannel, AWorkAloneIsReportedToo) {
  TestNics world;
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  both.send(both.there, 1'000, 1);
  EXPECT_EQ(both.there.sent, 1'000u);
  EXPECT_TRUE(both.there.each_arrived_once());
}

TEST(VerbsChannel, ReceivesAreGivenBackInBatches) {
  TestNics world;
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  const uint64_t before = world.nics.counts(1).receives;
  both.send(both.there, 5'000, 64);
  const uint64_t given = world.nics.counts(1).receives - before;
  EXPECT_EQ(given, (5'000 + 1) / kReceiveBatch * kReceiveBatch) << "the hello took one, too";
}

TEST(VerbsChannel, AFullQueueTakesNoMore) {
  Settings settings = verbs_settings();
  settings.max_batch = 100;
  TestNics world(settings);
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  ASSERT_EQ(world.left->caps().send_queue_depth, 256u);
  EXPECT_EQ(both.there.post(200), 100u) << "NCCL_SLIME_MAX_BATCH";
  EXPECT_EQ(both.there.post(100), 100u);
  EXPECT_EQ(both.there.post(100), 56u);
  EXPECT_EQ(both.there.post(100), 0u);
  world.settle();
  EXPECT_EQ(both.there.post(1), 0u) << "nobody has polled";
  Status status = Status::kOk;
  EXPECT_EQ(poll_once(*both.pair.left, &status, 3).size(), 3u);
  EXPECT_EQ(both.there.post(100), 3u);
}

// What is inline has been copied when post() returns: a later change of the memory does not travel.
void expect_inline_up_to(uint32_t most, uint32_t max_inline) {
  SCOPED_TRACE(max_inline);
  FakeVerbsOptions options;
  options.max_inline = max_inline;
  TestNics world(verbs_settings(), options);
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  for (const uint32_t length : {most, most + 1}) {
    if (length == 0) continue;
    TestBuffer from(*world.left, length, 1), to(*world.right, length);
    ASSERT_EQ(post_one(*pair.left, work_of(from, to, length)), Status::kOk);
    from.bytes().assign(length, std::byte{2});
    world.settle();
    EXPECT_EQ(to.bytes(), std::vector(length, std::byte{length <= most ? uint8_t{1} : uint8_t{2}}));
  }
}

TEST(VerbsChannel, SmallWorksAreInline) { expect_inline_up_to(128, 128); }
TEST(VerbsChannel, ANicThatRefusesTheWishedInlineSizeIsAskedForHalf) {
  expect_inline_up_to(64, 127);
  expect_inline_up_to(32, 40);
  expect_inline_up_to(1, 1);
  expect_inline_up_to(0, 0);
}

class VerbsLanes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(QueuePairs, VerbsLanes, testing::Values(1, 2, 6));

TEST_P(VerbsLanes, AllIsDeliveredBothWays) {
  TestNics world(verbs_settings(GetParam()));
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  for (uint32_t round = 1; both.there.posted < 3'000; ++round) {
    ASSERT_LT(round, 100'000u);
    while (both.there.post(round % 64 + 1) > 0) continue;
    while (both.back.post(7) > 0) continue;
    world.settle();
    both.poll_left();
    both.poll_right();
  }
  for (const Stream* const stream : {&both.there, &both.back}) {
    EXPECT_TRUE(stream->each_arrived_once());
    EXPECT_EQ(stream->sent, stream->posted);
    EXPECT_EQ(std::ranges::is_sorted(stream->arrived), GetParam() == 1) << "all lanes are used";
  }
}

// The most that can be there: this end's sends are done, and all its receives have completed.
TEST_P(VerbsLanes, TheCompletionQueueHoldsAllThatAnEndDoesNotPoll) {
  TestNics world(verbs_settings(GetParam()));
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  while (both.back.post(64) > 0) continue;
  do {
    while (both.there.post(1) > 0) continue;
    world.settle();
    both.poll_left();
  } while (both.there.posted - both.there.sent < 256);
  const uint32_t held = static_cast<uint32_t>(GetParam()) * kReceives - 1;  // 1: the hello's
  EXPECT_EQ(both.there.sent, held) << "the test has not filled the queue";
  EXPECT_THAT(world.nics.violations(), IsEmpty());
  for (int i = 0; i < 20; ++i) {
    both.poll_right();
    world.settle();
    both.poll_left();
  }
  EXPECT_TRUE(both.there.each_arrived_once());
  EXPECT_TRUE(both.back.each_arrived_once());
}

TEST_P(VerbsLanes, TheCompletionQueueHoldsAllThatIsFlushed) {
  TestNics world(verbs_settings(GetParam()));
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  while (both.there.post(64) > 0) continue;
  both.pair.left->fence();
  EXPECT_THAT(world.nics.violations(), IsEmpty());
}

void expect_all_delivered(int lanes_left, int lanes_right) {
  TestNics world(verbs_settings(lanes_left), verbs_settings(lanes_right), {});
  BothWays both(world);
  ASSERT_TRUE(both.connected);
  both.send(both.there, 2'000, 10);
  both.send(both.back, 2'000, 10);
  EXPECT_TRUE(both.there.each_arrived_once());
  EXPECT_TRUE(both.back.each_arrived_once());
}

TEST(VerbsChannel, UnequalNumbersOfQueuePairs) {
  expect_all_delivered(2, 6);
  expect_all_delivered(6, 2);
  expect_all_delivered(1, 6);
}

}  // namespace
}  // namespace slime::verbs
