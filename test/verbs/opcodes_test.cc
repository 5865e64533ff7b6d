// Silent writes and reads of a verbs channel, and what a peer may do with registered memory.
#include <set>

#include "test/support/device_memory.h"
#include "test/verbs/support.h"
#include "transports/verbs/lanes.h"

namespace slime::verbs {
namespace {

Work with(Opcode opcode, Work work) {
  work.opcode = opcode;
  return work;
}

// A connected pair, and memory of both that everybody may read and write.
struct Opcodes {
  TestNics world;
  TestPair pair{world};
  bool connected = pair.connect();
  TestBuffer here, there;

  explicit Opcodes(const Settings& left = verbs_settings(),
                   const Settings& right = verbs_settings(), const FakeVerbsOptions& options = {})
      : world(left, right, options),
        here(*world.left, 4'096, 1, kRemoteWrite | kRemoteRead),
        there(*world.right, 4'096, 2, kRemoteWrite | kRemoteRead) {}

  Work work(Opcode opcode, uint64_t cookie = 0, uint32_t length = 4'096) {
    return with(opcode, work_of(here, there, length, 0, cookie));
  }
  size_t post(const std::vector<Work>& works) {
    size_t taken = 0;
    EXPECT_EQ(pair.left->post(works, &taken), Status::kOk) << pair.left->failure().what;
    return taken;
  }
  // What is sent of these works, which are posted at once.
  std::vector<Done> sent_of(const std::vector<Work>& works) {
    EXPECT_EQ(post(works), works.size());
    world.settle();
    Status status = Status::kOk;
    return poll_all(*pair.left, &status);
  }
};

TEST(VerbsOpcodes, SilentWritesUseNoReceiveAndTheTargetSeesNoCompletion) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  const FakeVerbsCounts before = test.world.nics.counts(1);
  constexpr uint32_t kWorks = 2 * kReceives;
  uint32_t sent = 0;
  Status status = Status::kOk;
  for (uint32_t posted = 0; sent < kWorks && status == Status::kOk;) {
    if (posted < kWorks) posted += test.post({test.work(Opcode::kWrite, posted)});
    ASSERT_TRUE(test.world.nics.step());
    sent += poll_all(*test.pair.left, &status).size();
  }
  EXPECT_EQ(test.there.bytes(), test.here.bytes());
  EXPECT_THAT(poll_all(*test.pair.right, &status), IsEmpty());
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(test.world.nics.counts(1).receives, before.receives);
  EXPECT_EQ(test.pair.right->counters.arrivals.get(), 0u);
}

TEST(VerbsOpcodes, ReadsHavePlacesBesideThoseOfWrites) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  const RailCaps& caps = test.world.left->caps();
  Status status = Status::kOk;
  EXPECT_THAT(poll_all(*test.pair.left, &status), IsEmpty()) << "the hello's completion";
  size_t reads = 0, writes = 0;
  while (test.post({test.work(Opcode::kRead, 1)}) == 1) ++reads;
  EXPECT_EQ(reads, caps.max_outstanding_reads);
  while (test.post({test.work(Opcode::kWrite), test.work(Opcode::kWriteWithImmediate)}) > 0) {
    writes += 2;
  }
  EXPECT_EQ(writes, caps.send_queue_depth);
  EXPECT_EQ(test.post({test.work(Opcode::kRead), test.work(Opcode::kWrite)}), 0u);
  test.world.settle();
  EXPECT_EQ(poll_once(*test.pair.left, &status, 3).size(), 3u);
  EXPECT_EQ(test.post({4, test.work(Opcode::kWrite)}), 0u) << "three reads have ended";
  EXPECT_EQ(test.post({4, test.work(Opcode::kRead)}), 3u);
}

// What is inline has been copied, and a read has nothing to copy.
TEST(VerbsOpcodes, SmallReadsBringTheirBytes) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  for (const uint32_t length : {1u, 8u, 128u, 129u}) {
    test.there.fill_pattern(length);
    EXPECT_EQ(test.sent_of({test.work(Opcode::kRead, 0, length)}).size(), 1u);
    EXPECT_EQ(std::memcmp(test.here.data(), test.there.data(), length), 0) << length;
  }
}

// The fake NIC shows what it has acknowledged only to a message or read that comes later.
TEST(VerbsOpcodes, ASilentWriteIsSentWhenAReadBehindItHasCompleted) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  Status status = Status::kOk;
  EXPECT_EQ(test.post({test.work(Opcode::kWrite, 1), test.work(Opcode::kWrite, 2)}), 2u);
  EXPECT_EQ(test.post({test.work(Opcode::kWrite, 3)}), 1u) << "it waits for a read of its own";
  const uint64_t sends = test.world.nics.counts(0).sends;
  ASSERT_TRUE(test.world.nics.step() && test.world.nics.step());
  EXPECT_THAT(poll_all(*test.pair.left, &status), IsEmpty()) << "acknowledged, and not visible";
  EXPECT_NE(test.there.bytes(), test.here.bytes());
  test.world.settle();
  EXPECT_EQ(poll_all(*test.pair.left, &status).size(), 2u);
  EXPECT_EQ(test.there.bytes(), test.here.bytes());
  EXPECT_EQ(test.world.nics.counts(0).sends, sends + 1);
  test.world.settle();
  EXPECT_EQ(poll_all(*test.pair.left, &status).size(), 1u);
  EXPECT_EQ(test.world.nics.counts(0).sends, sends + 1) << "nothing more to read behind";
}

TEST(VerbsOpcodes, ASilentWriteBeforeARefusedWorkIsNotSent) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  std::vector<Work> works = {test.work(Opcode::kRead, 0), test.work(Opcode::kWrite, 1),
                             test.work(Opcode::kRead, 2), test.work(Opcode::kRead, 3)};
  works[3].remote_key ^= 1;
  const std::vector<Done> done = test.sent_of(works);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].cookie, 0u);
  EXPECT_EQ(done[0].kind, Done::Kind::kSent);
  EXPECT_EQ(done[1].cookie, 3u);
  EXPECT_EQ(done[1].kind, Done::Kind::kRefused);
  EXPECT_THAT(failure_of(test.world, *test.pair.left).what, HasSubstr("with 1 work not"));
}

TEST(VerbsOpcodes, AReadBehindThatCannotBePostedFailsTheChannel) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  EXPECT_EQ(test.post({test.work(Opcode::kWrite)}), 1u);
  EXPECT_EQ(test.post({test.work(Opcode::kWrite)}), 1u);
  test.world.settle();
  test.world.nics.fail_sends(0, ENOMEM);
  EXPECT_THAT(failure_of(test.world, *test.pair.left).what,
              HasSubstr("ibv_post_send of a read failed"));
}

// Its queue takes the work, and not the read behind it.
TEST(VerbsOpcodes, APostWhoseReadBehindIsRefusedHasTakenItsWorks) {
  Opcodes test;
  ASSERT_TRUE(test.connected);
  test.world.nics.fail_sends(2, ENOMEM);
  const std::vector<Work> works(2, test.work(Opcode::kWrite));
  size_t taken = 0;
  EXPECT_EQ(test.pair.left->post(works, &taken), Status::kNoMemory);
  EXPECT_EQ(taken, 2u);
}

TEST(VerbsOpcodes, ANicWithoutReadsSaysSo) {
  for (const std::pair<int, int>& reads : {std::pair(0, 16), {16, 0}}) {
    FakeVerbsOptions options;
    options.reads = {reads};
    TestNics world(verbs_settings(), options);
    EXPECT_EQ(world.left->caps().opcodes, opcode_bit(Opcode::kWriteWithImmediate));
    EXPECT_EQ(world.left->caps().max_outstanding_reads, 0u);
  }
}

class VerbsOpcodesOfLanes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(QueuePairs, VerbsOpcodesOfLanes, testing::Values(1, 2, 6));

TEST_P(VerbsOpcodesOfLanes, EachWorkOfAMixedStreamEndsOnce) {
  Opcodes test(verbs_settings(GetParam()), verbs_settings(GetParam()));
  ASSERT_TRUE(test.connected);
  constexpr uint64_t kWorks = 6'000;
  std::set<uint64_t> ended;
  Status status = Status::kOk;
  uint64_t posted = 0, arrived = 0;
  while (ended.size() < kWorks && status == Status::kOk) {
    std::vector<Work> batch;
    for (uint64_t i = posted; i < std::min(posted + 7, kWorks); ++i) {
      batch.push_back(test.work(static_cast<Opcode>(i % 3), i, 64));
    }
    posted += test.post(batch);
    (void)test.world.nics.step();
    for (const Done& done : poll_all(*test.pair.left, &status)) {
      EXPECT_EQ(done.kind, Done::Kind::kSent);
      EXPECT_TRUE(ended.insert(done.cookie).second) << done.cookie;
    }
    arrived += poll_all(*test.pair.right, &status).size();
  }
  test.world.settle();
  arrived += poll_all(*test.pair.right, &status).size();
  EXPECT_EQ(arrived, kWorks / 3);
  EXPECT_EQ(status, Status::kOk);
}

// The most that can be there: all this end's works are done, each with a completion of its own, and
// all its receives have completed.
TEST_P(VerbsOpcodesOfLanes, TheCompletionQueueHoldsAllThatAnEndDoesNotPoll) {
  Opcodes test(verbs_settings(GetParam()), verbs_settings(GetParam()));
  ASSERT_TRUE(test.connected);
  while (test.post({test.work(Opcode::kRead)}) == 1) continue;
  while (test.post({test.work(Opcode::kWrite)}) == 1) continue;
  const Work back = work_of(test.there, test.here, 8);
  size_t posted = 0, taken = 1;
  for (Status status = Status::kOk; taken == 1 && status == Status::kOk; posted += taken) {
    ASSERT_EQ(test.pair.right->post({&back, 1}, &taken), Status::kOk);
    test.world.settle();
    (void)poll_all(*test.pair.right, &status);
  }
  const size_t arrived = posted - test.world.right->caps().send_queue_depth;  // others wait
  EXPECT_EQ(arrived, static_cast<size_t>(GetParam()) * kReceives - 1) << "1: the hello's";
  EXPECT_THAT(test.world.nics.violations(), IsEmpty());
}

struct Limits {
  std::pair<int, int> left, right;  // reads and reads of the peer, as the NICs say
  int of_left, of_right;            // under way, as they agreed
};

TEST(VerbsOpcodes, AsManyReadsAreUnderWayAsBothNicsHandle) {
  for (const Limits& limits : {Limits{{16, 16}, {16, 16}, 16, 16},
                               {{16, 4}, {8, 2}, 2, 4},
                               {{3, 16}, {16, 16}, 3, 16},
                               {{128, 128}, {200, 99}, kMostReads, kMostReads}}) {
    FakeVerbsOptions options;
    options.reads = {limits.left, limits.right};
    const Opcodes test(verbs_settings(), verbs_settings(), options);
    ASSERT_TRUE(test.connected);
    const ibv_qp_attr left = test.world.nics.attributes(0).front();
    const ibv_qp_attr right = test.world.nics.attributes(1).front();
    EXPECT_EQ(left.max_rd_atomic, limits.of_left);
    EXPECT_EQ(right.max_dest_rd_atomic, limits.of_left);
    EXPECT_EQ(right.max_rd_atomic, limits.of_right);
    EXPECT_EQ(left.max_dest_rd_atomic, limits.of_right);
  }
}

// They fail the channel, as the queue pair ends with them. What stands before them has ended.
TEST(VerbsOpcodes, WhatStandsBeforeARefusedWorkIsSent) {
  for (const Opcode opcode : {Opcode::kWriteWithImmediate, Opcode::kRead}) {
    Opcodes test;
    ASSERT_TRUE(test.connected);
    std::vector<Work> works;
    for (uint64_t i = 0; i < 5; ++i) works.push_back(test.work(opcode, i, 64));
    works[3].remote_key ^= 1;
    std::vector<Done> done = test.sent_of(works);
    const bool by_name = opcode == Opcode::kRead;
    ASSERT_EQ(done.size(), by_name ? 4u : 3u);
    if (by_name) {
      EXPECT_EQ(done.back().kind, Done::Kind::kRefused);
      EXPECT_EQ(done.back().cookie, 3u);
      done.pop_back();
    }
    for (uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(done[i].kind, Done::Kind::kSent);
      EXPECT_EQ(done[i].cookie, i);
    }
    const std::string failure = failure_of(test.world, *test.pair.left).what;
    EXPECT_THAT(failure, HasSubstr("with 2 works not delivered"));
    EXPECT_THAT(failure, HasSubstr("refused the address or key"));
  }
}

TEST(VerbsRights, AreThoseOfTheRegistration) {
  TestNics world;
  for (const auto& [rights, access] :
       {std::pair<uint8_t, unsigned>(0, 0),
        {kRemoteWrite, IBV_ACCESS_REMOTE_WRITE},
        {kRemoteRead, IBV_ACCESS_REMOTE_READ},
        {kRemoteWrite | kRemoteRead, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}}) {
    const TestBuffer buffer(*world.left, 64, 0, rights);
    const unsigned granted = world.nics.access_of(buffer.keys().remote);
    EXPECT_EQ(granted & ~static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING),
              access | IBV_ACCESS_LOCAL_WRITE);
  }
}

// Neither with the key of the range, nor with that of the flusher.
TEST(VerbsRights, AFlusherReadsWhatNoPeerMayRead) {
  constexpr uint64_t kOfFlusher = 0x200;  // a fake NIC counts its keys
  for (const uint64_t key : {uint64_t{0}, kOfFlusher}) {
    Opcodes test;
    ASSERT_TRUE(test.connected);
    TestBuffer written(*test.world.right, 64);
    auto flusher = test.world.right->open_flusher();
    ASSERT_TRUE(flusher) << flusher.error().what;
    const size_t objects = test.world.nics.objects();
    uint64_t completed = 0;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ((*flusher)->begin(written.data(), 0, written.keys()), Status::kOk);
      test.world.settle();
      EXPECT_EQ((*flusher)->poll(&completed), Status::kOk) << (*flusher)->failure().what;
    }
    EXPECT_EQ(completed, 3u);
    EXPECT_EQ(test.world.nics.objects(), objects + 1) << "its registration, once";
    EXPECT_EQ(
        test.world.nics.access_of(written.keys().remote + kOfFlusher) & IBV_ACCESS_REMOTE_READ,
        unsigned{IBV_ACCESS_REMOTE_READ});
    Work read = with(Opcode::kRead, work_of(test.here, written, 64));
    read.remote_key += key;
    EXPECT_EQ(test.post({read}), 1u);
    test.world.settle();
    EXPECT_THAT(failure_of(test.world, *test.pair.left).what,
                HasSubstr("refused the address or key"));
    written.deregister();
    EXPECT_EQ(test.world.nics.objects(), objects - 1);
  }
}

TEST(VerbsRights, HostMemoryThatCannotBeRegisteredForFlushesIsRefused) {
  TestNics world;
  TestBuffer memory(*world.left, 64);
  auto flusher = world.left->open_flusher();
  ASSERT_TRUE(flusher);
  world.nics.fail_registrations(ENOMEM);
  EXPECT_EQ((*flusher)->begin(memory.data(), 0, memory.keys()), Status::kNoMemory);
  EXPECT_THAT((*flusher)->failure().what, HasSubstr("rail fake0, for flushes: 64 bytes at "));
  EXPECT_THAT((*flusher)->failure().what, HasSubstr("cannot be registered"));
}

TEST(VerbsRights, MemoryOfADeviceThatCannotBeRegisteredForFlushesIsRefused) {
  FakeVerbsOptions options;
  options.dma_bufs = true;
  TestNics world(verbs_settings(), options);
  test::DeviceMemory memory;
  const size_t objects = world.nics.objects();
  world.nics.fail_registrations(ENOMEM, 1);
  const auto keys = world.left->register_memory(memory.range());
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().what, HasSubstr("rail fake0: 16384 bytes at "));
  EXPECT_EQ(world.nics.objects(), objects) << "the first registration is gone";
}

// Its DMA-BUF may be closed afterwards.
TEST(VerbsRights, MemoryOfADeviceIsRegisteredForFlushesAtOnce) {
  FakeVerbsOptions options;
  options.dma_bufs = true;
  TestNics world(verbs_settings(), options);
  test::DeviceMemory memory;
  auto flusher = world.left->open_flusher();
  ASSERT_TRUE(flusher);
  const size_t objects = world.nics.objects();
  const auto keys = world.left->register_memory(memory.range());
  ASSERT_TRUE(keys) << keys.error().what;
  EXPECT_EQ(world.nics.objects(), objects + 2);
  memory.close_file();
  EXPECT_EQ((*flusher)->begin(static_cast<std::byte*>(memory.range().address), 0, *keys),
            Status::kOk);
  world.settle();
  uint64_t completed = 0;
  EXPECT_EQ((*flusher)->poll(&completed), Status::kOk) << (*flusher)->failure().what;
  EXPECT_EQ(completed, 1u);
  world.left->deregister_memory(*keys);
  EXPECT_EQ(world.nics.objects(), objects);
}

}  // namespace
}  // namespace slime::verbs
