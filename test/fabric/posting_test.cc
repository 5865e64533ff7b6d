// How works are handed to the provider: doorbells that are held back, and queues that are full.
#include "test/fabric/support.h"
#include "transports/fabric/sender.h"

namespace slime::fabric {
namespace {

struct Posting {
  TestNics world;
  TestPair pair;
  TestBuffer from, to;

  explicit Posting(const FakeFabricOptions& options = {})
      : world(options), pair(world), from(*world.left, 4'096), to(*world.right, 4'096) {
    from.fill_pattern(3);
    connected = pair.connect();
  }
  void run(uint32_t works) {
    fabric::run(pair, works_of(from, to, works));
    EXPECT_EQ(std::min<size_t>(works * 8, 4'096), matching());
  }
  size_t matching() {
    const auto [end, other] = std::ranges::mismatch(from.bytes(), to.bytes());
    return static_cast<size_t>(end - from.bytes().begin());
  }
  uint64_t held_back() {
    const auto flags = world.nics.write_flags();
    return static_cast<uint64_t>(
        std::ranges::count_if(flags, [](uint64_t one) { return (one & FI_MORE) != 0; }));
  }
  bool connected = false;
};

TEST(FabricPosting, EachWorkRingsBefore26) {
  Posting posting({.version = FI_VERSION(2, 5)});
  ASSERT_TRUE(posting.connected);
  posting.run(200);
  EXPECT_EQ(posting.held_back(), 0u);
}

TEST(FabricPosting, ABatchRingsOnceForEachSixteenWorks) {
  Posting posting(in_order());
  ASSERT_TRUE(posting.connected);
  const uint64_t before = posting.world.nics.counts(0).doorbells;
  posting.run(64);
  EXPECT_EQ(posting.world.nics.counts(0).doorbells - before, 64 / kMostHeldBack);
  EXPECT_EQ(posting.world.nics.counts(0).most_held, kMostHeldBack - 1);
}

TEST(FabricPosting, ACompletionIsAskedForWhenThePeersNicHasTheWork) {
  Posting posting;
  ASSERT_TRUE(posting.connected);
  posting.run(3);
  for (const uint64_t flags : posting.world.nics.write_flags()) {
    EXPECT_EQ(flags & (FI_COMPLETION | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE),
              FI_COMPLETION | FI_TRANSMIT_COMPLETE);
  }
}

// What is held back when the provider takes no more moves though nothing else is posted.
TEST(FabricPosting, TheDoorbellIsRungThoughTheProviderWasBusyWithinTheBatch) {
  for (const size_t after : {0, 1, 5, 9}) {
    for (const size_t times : {1, 3}) {
      Posting posting;
      ASSERT_TRUE(posting.connected);
      posting.world.nics.refuse_writes(after, times, -FI_EAGAIN);
      posting.run(10);
      EXPECT_EQ(posting.world.nics.counts(0).refused, times);
    }
  }
}

TEST(FabricPosting, ABusyProviderTakesAllInTheEnd) {
  Posting posting({.tx_places = 40, .busy_percent = 40});
  ASSERT_TRUE(posting.connected);
  posting.run(1'000);
  EXPECT_GT(posting.world.nics.counts(0).refused, 0u);
}

TEST(FabricPosting, ASmallQueueLimitsWhatAChannelTakes) {
  Posting posting({.tx_size = 100});
  ASSERT_TRUE(posting.connected);
  EXPECT_EQ(posting.world.left->caps().send_queue_depth, 64u);
  const auto works = works_of(posting.from, posting.to, 100);
  size_t taken = 0, more = 0;
  ASSERT_EQ(posting.pair.left->post(works, &taken), Status::kOk);
  ASSERT_EQ(posting.pair.left->post(std::span(works).subspan(taken), &more), Status::kOk);
  EXPECT_EQ(taken + more, 64u);
  posting.world.settle();
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*posting.pair.left, &status).size(), 64u);
  EXPECT_EQ(poll_all(*posting.pair.right, &status).size(), 64u);
  posting.run(500);
}

TEST(FabricPosting, ABusyProviderMakesNoChannelTakeMore) {
  Posting posting({.tx_places = 40});
  ASSERT_TRUE(posting.connected);
  const auto works = works_of(posting.from, posting.to, 400);
  size_t all = 0, taken = 1;
  while (taken > 0) {
    ASSERT_EQ(posting.pair.left->post(std::span(works).subspan(all), &taken), Status::kOk);
    all += taken;
  }
  EXPECT_EQ(all, 256u);
  Status status = Status::kOk;
  size_t sent = 0;
  EXPECT_TRUE(eventually([&] {
    posting.world.settle();
    sent += poll_all(*posting.pair.left, &status).size();
    return sent == all;
  }));
}

TEST(FabricPosting, AFullReceiverMakesItsSenderWait) {
  Posting posting({.rx_size = 20});
  ASSERT_TRUE(posting.connected);
  const auto works = works_of(posting.from, posting.to, 60);
  size_t taken = 0;
  ASSERT_EQ(posting.pair.left->post(works, &taken), Status::kOk);
  posting.world.settle();
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*posting.pair.left, &status).size(), 20u);
  size_t arrived = 0;
  EXPECT_TRUE(eventually([&] {
    arrived += poll_all(*posting.pair.right, &status).size();
    posting.world.settle();
    return arrived == 60;
  }));
  EXPECT_EQ(poll_all(*posting.pair.left, &status).size(), 40u);
}

TEST(FabricPosting, ARefusalIsNamed) {
  Posting posting;
  ASSERT_TRUE(posting.connected);
  posting.world.nics.refuse_writes(0, 1, -FI_ENOMEM);
  const Work work = works_of(posting.from, posting.to, 1)[0];
  EXPECT_NE(post_one(*posting.pair.left, work), Status::kOk);
  EXPECT_THAT(posting.pair.left->failure().what,
              HasSubstr("fi_writemsg of 8 bytes failed: fake error 12 (12); see dmesg"));
}

// The provider has the first works of the batch, and carries them out.
TEST(FabricPosting, OfABatchThatIsRefusedInTheMiddleNothingIsSent) {
  for (const uint32_t before : {0u, 3u}) {
    for (const uint32_t taken_by_provider : {1u, 7u, 15u}) {
      SCOPED_TRACE(testing::Message() << before << " works before, " << taken_by_provider);
      Posting posting({.version = FI_VERSION(2, 5)});  // holds no doorbell back
      ASSERT_TRUE(posting.connected);
      const auto works = works_of(posting.from, posting.to, before + 16);
      size_t taken = 9;
      ASSERT_EQ(posting.pair.left->post(std::span(works).first(before), &taken), Status::kOk);
      posting.world.nics.refuse_writes(taken_by_provider, 1, -FI_ENOMEM);
      ASSERT_NE(posting.pair.left->post(std::span(works).subspan(before), &taken), Status::kOk);
      EXPECT_EQ(taken, taken_by_provider);
      std::vector<Done> done;
      const Error error = failure_of(posting.world, *posting.pair.left, &done);
      EXPECT_THAT(error.what, HasSubstr("fi_writemsg of 8 bytes failed"));
      EXPECT_EQ(done.size(), before);
      for (const Done& sent : done) EXPECT_LT(sent.cookie, before);
      EXPECT_EQ(posting.matching(), size_t{8} * (before + taken_by_provider));
    }
  }
}

}  // namespace
}  // namespace slime::fabric
