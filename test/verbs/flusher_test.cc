// Reads behind what arrived in registered memory, also while their queue pair fails and its port
// changes.
#include <array>
#include <cerrno>

#include "test/support/device_memory.h"
#include "test/support/kept_warnings.h"
#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kRoom = 16;

// With memory to read.
struct TestFlusher final : test::LeftFlusher<TestNics> {
  explicit TestFlusher(const Settings& settings = verbs_settings(),
                       const FakeVerbsOptions& options = {})
      : LeftFlusher(settings, options), memory(*world.left, 64), other(*world.left, 64) {}

  Status begin(TestBuffer& buffer) { return flusher->begin(buffer.data(), 0, buffer.keys()); }
  Status begin() override { return begin(memory); }
  // Until the queue pair has been replaced so often that reads were posted so many times.
  bool await_posts(uint64_t posts) {
    const uint64_t before = world.nics.counts(0).sends;
    return eventually([&] {
      world.settle();
      return poll() != Status::kOk || world.nics.counts(0).sends >= before + posts;
    });
  }

  TestBuffer memory, other;
};

// The NIC tries again for more than a minute.
Settings patient() {
  Settings settings = verbs_settings();
  settings.ib_timeout = 24;
  return settings;
}

FakeVerbsOptions infiniband() {
  FakeVerbsOptions options;
  options.ethernet = false;
  return options;
}

TEST(VerbsFlusher, CountsItsReadsAndSaysWhenItIsFull) {
  TestFlusher test;
  uint64_t begun = 0;
  while (test.begin() == Status::kOk) ++begun;
  EXPECT_EQ(begun, kRoom);
  EXPECT_EQ(test.poll(), Status::kOk);
  EXPECT_EQ(test.completed, 0u);
  test.world.settle();
  EXPECT_EQ(test.poll(), Status::kOk);
  EXPECT_EQ(test.completed, kRoom);
  EXPECT_EQ(test.begin(), Status::kOk);
}

TEST(VerbsFlusher, AReadOutsideRegisteredMemoryIsRefusedByName) {
  for (const size_t offset : {0, 64}) {
    TestFlusher test;
    const MemoryKeys keys = test.memory.keys();
    if (offset == 0) test.memory.deregister();
    EXPECT_EQ(test.flusher->begin(test.memory.data() + offset, offset, keys), Status::kInvalid);
    EXPECT_THAT(test.flusher->failure().what, HasSubstr("rail fake0, for flushes: a read at 0x"));
    EXPECT_EQ(test.poll(), Status::kInvalid) << "it stays so";
    EXPECT_EQ(test.completed, 0u);
  }
}

TEST(VerbsFlusher, WithoutMemoryNoneOpensAndNothingIsLeft) {
  TestNics world;
  const size_t before = world.nics.objects();
  world.nics.fail_registrations(ENOMEM);
  const auto flusher = world.left->open_flusher();
  ASSERT_FALSE(flusher);
  EXPECT_THAT(flusher.error().what, HasSubstr("rail fake0, for flushes: ibv_reg_mr"));
  EXPECT_EQ(world.nics.objects(), before);
}

TEST(VerbsFlusher, ReadsThatFailAreRepeatedOnAnotherQueuePair) {
  TestFlusher test;
  size_t objects = 0;  // once its memory is registered for flushes
  for (uint64_t round = 1; round <= 3; ++round) {
    for (uint64_t i = 0; i < kRoom; ++i) ASSERT_EQ(test.begin(), Status::kOk);
    for (uint64_t i = 0; i < round; ++i) ASSERT_TRUE(test.world.nics.step());
    test.world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
    test.world.settle();
    ASSERT_EQ(test.poll(), Status::kOk);
    EXPECT_EQ(test.completed, (round - 1) * kRoom + round) << "what follows has read nothing";
    ASSERT_TRUE(test.await(round * kRoom)) << test.flusher->failure().what;
    if (round == 1) objects = test.world.nics.objects();
  }
  EXPECT_EQ(test.world.nics.objects(), objects);
}

TEST(VerbsFlusher, ReadsMayBeginUntilAnotherQueuePairIsThere) {
  TestFlusher test;
  ASSERT_EQ(test.begin(), Status::kOk);
  test.world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
  test.world.settle();
  ASSERT_EQ(test.poll(), Status::kOk);
  uint64_t begun = 1;
  while (test.begin() == Status::kOk) ++begun;
  EXPECT_EQ(begun, kRoom);
  EXPECT_TRUE(test.await(kRoom)) << test.flusher->failure().what;
}

TEST(VerbsFlusher, AReadThatFailsAgainIsAFailureByName) {
  TestFlusher test;
  ASSERT_EQ(test.begin(), Status::kOk);
  test.world.settle();
  ASSERT_EQ(test.begin(), Status::kOk);
  test.world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
  ASSERT_TRUE(test.await(2)) << "one failure alone is none";
  ASSERT_EQ(test.begin(), Status::kOk);
  ASSERT_EQ(test.begin(), Status::kOk);
  for (int i = 0; i < 2; ++i) {
    test.world.nics.fail_next(IBV_WC_REM_ACCESS_ERR);
    test.world.settle();
    const uint64_t posts = test.world.nics.counts(0).sends;
    ASSERT_TRUE(eventually([&] {  // what is posted again has not moved
      return test.poll() != Status::kOk || test.world.nics.counts(0).sends > posts;
    }));
  }
  const std::string what = test.failure();
  EXPECT_EQ(test.flusher->failure().status, Status::kSystem);
  EXPECT_THAT(what, HasSubstr("rail fake0, for flushes: a read of the rail's own memory failed: "));
  EXPECT_THAT(what, HasSubstr("fake status 10 (status 10, vendor 0x81)"));
  EXPECT_THAT(what, HasSubstr("another queue pair did not help"));
  EXPECT_EQ(test.completed, 2u);
}

TEST(VerbsFlusher, AReadThatCannotBeRepeatedIsAFailureByName) {
  TestFlusher test;
  ASSERT_EQ(test.begin(), Status::kOk);
  test.world.nics.fail_next(IBV_WC_RETRY_EXC_ERR);
  test.world.settle();
  test.world.nics.fail_sends(0, ENOMEM);
  EXPECT_THAT(test.failure(), HasSubstr("rail fake0, for flushes: ibv_post_send of a read failed"));
  EXPECT_EQ(test.completed, 0u);
}

TEST(VerbsFlusher, ADeviceThatFailsUnderAReadIsNamed) {
  const test::KeptWarnings warnings("device fake0: ");
  TestFlusher test(patient());
  test.world.nics.set_link(0, false);
  ASSERT_EQ(test.begin(), Status::kOk);
  test.world.nics.raise(0, IBV_EVENT_DEVICE_FATAL);
  EXPECT_THAT(test.failure(), HasSubstr("rail fake0, for flushes: device fake0 has failed"));
  EXPECT_EQ(test.completed, 0u);
}

// The NIC would go on for more than a minute with the address that the port had.
TEST(VerbsFlusher, FollowsItsPortToAnotherAddress) {
  for (const FakeVerbsOptions& options : {FakeVerbsOptions(), infiniband()}) {
    TestFlusher test(patient(), options);
    for (const uint16_t last : {7, 8}) {
      ASSERT_EQ(test.begin(), Status::kOk);
      ASSERT_EQ(test.begin(test.other), Status::kOk);
      if (options.ethernet) {
        test.world.nics.set_gid(0, 1, "::ffff:10.77.0." + std::to_string(last));
        test.world.nics.raise(0, IBV_EVENT_GID_CHANGE);
      } else {
        test.world.nics.set_lid(0, last);
        test.world.nics.raise(0, IBV_EVENT_LID_CHANGE);
      }
      EXPECT_FALSE(test.world.nics.step());
      EXPECT_TRUE(test.await(test.completed + 2)) << test.flusher->failure().what;
    }
  }
}

TEST(VerbsFlusher, EventsWithoutAChangeDisturbNoRead) {
  TestFlusher test(patient());
  test.world.nics.set_link(0, false);
  ASSERT_EQ(test.begin(), Status::kOk);
  test.world.nics.raise(0, IBV_EVENT_GID_CHANGE);
  const uint64_t before = test.world.nics.counts(0).looks;
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(test.poll(), Status::kOk);
    return test.world.nics.counts(0).looks > before;
  }));
  test.world.nics.set_link(0, true);
  const uint64_t posts = test.world.nics.counts(0).sends;
  EXPECT_TRUE(test.await(1));
  EXPECT_EQ(test.world.nics.counts(0).sends, posts);
}

// Nothing is complete before it has been read, however long that takes.
TEST(VerbsFlusher, WaitsForAPortThatIsDown) {
  const test::KeptWarnings warnings("fake0:1 is not active");
  TestFlusher test;
  for (uint64_t outage = 1; outage <= 2; ++outage) {
    test.world.nics.set_link(0, false);
    ASSERT_EQ(test.begin(), Status::kOk);
    ASSERT_EQ(test.begin(test.other), Status::kOk);
    ASSERT_TRUE(test.await_posts(6)) << "two reads, three times";
    EXPECT_EQ(test.poll(), Status::kOk) << test.flusher->failure().what;
    EXPECT_EQ(test.completed, 2 * (outage - 1));
    EXPECT_EQ(warnings.lines().size(), outage);
    test.world.nics.set_link(0, true);
    EXPECT_TRUE(test.await(2 * outage)) << test.flusher->failure().what;
  }
  EXPECT_THAT(warnings.lines().front(), HasSubstr("rail fake0: a flush waits for its port"));
}

// Its GID table is empty meanwhile, as where its interface has no address.
TEST(VerbsFlusher, WaitsForAPortThatHasNoAddress) {
  const test::KeptWarnings warnings("its GID table is empty");
  FakeVerbsOptions options;
  options.gids = {"::ffff:10.77.0.1"};
  TestFlusher test(verbs_settings(), options);
  test.world.nics.set_gid(0, 0, "::");
  test.world.nics.raise(0, IBV_EVENT_GID_CHANGE);
  ASSERT_EQ(test.begin(), Status::kOk);
  ASSERT_TRUE(test.await_posts(2));
  EXPECT_EQ(test.completed, 0u);
  EXPECT_EQ(warnings.lines().size(), 1u);
  test.world.nics.set_gid(0, 0, "::ffff:10.77.0.9");
  test.world.nics.raise(0, IBV_EVENT_GID_CHANGE);
  EXPECT_TRUE(test.await(1)) << test.flusher->failure().what;
}

TEST(VerbsFlusher, AReadOfMemoryThatWasDeregisteredMeanwhileIsComplete) {
  TestFlusher test;
  TestBuffer gone(*test.world.left, 64);
  for (TestBuffer* const buffer : {&test.memory, &gone, &test.other, &gone, &test.memory}) {
    ASSERT_EQ(test.begin(*buffer), Status::kOk);
  }
  gone.deregister();
  test.world.settle();
  ASSERT_EQ(test.poll(), Status::kOk);
  EXPECT_LE(test.completed, 2u) << "the third waits for another queue pair";
  EXPECT_TRUE(test.await(5)) << test.flusher->failure().what;
  ASSERT_EQ(test.begin(), Status::kOk);
  EXPECT_TRUE(test.await(6));
}

TEST(VerbsFlusher, MemoryThatGoesTimeAndAgainIsNoFailure) {
  TestFlusher test;
  for (uint64_t i = 1; i <= 5; ++i) {
    TestBuffer gone(*test.world.left, 64);
    ASSERT_EQ(test.begin(gone), Status::kOk);
    gone.deregister();
    EXPECT_TRUE(test.await(i)) << test.flusher->failure().what;
  }
}

}  // namespace
}  // namespace slime::verbs
