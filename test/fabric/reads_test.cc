// Reads and silent writes, and the reads behind silent writes that show them.
#include "test/fabric/support.h"
#include "transports/fabric/sender.h"

namespace slime::fabric {
namespace {

constexpr size_t kBytes = 4'096;

struct Connected {
  TestNics world;
  TestPair pair;
  TestBuffer here, there;
  bool connected = false;
  Status left = Status::kOk, right = Status::kOk;
  size_t refused = 0;  // that sent() saw

  explicit Connected(const FakeFabricOptions& options = in_order())
      : world(options),
        pair(world),
        here(*world.left, kBytes),
        there(*world.right, kBytes, 0, kRemoteWrite | kRemoteRead) {
    connected = pair.connect();
  }
  std::vector<Work> works(Opcode opcode, uint32_t count) {
    std::vector<Work> works = works_of(here, there, count);
    for (Work& work : works) work.opcode = opcode;
    return works;
  }
  Status post(std::span<const Work> works) {
    size_t taken = 0;
    const Status posted = pair.left->post(works, &taken);
    EXPECT_EQ(taken, posted == Status::kOk ? works.size() : 0);
    return posted;
  }
  std::vector<uint64_t> sent() {  // cookies of what one poll returns
    std::vector<uint64_t> cookies;
    for (const Done& done : poll_once(*pair.left, &left)) {
      EXPECT_NE(done.kind, Done::Kind::kArrived);
      if (done.kind == Done::Kind::kSent) cookies.push_back(done.cookie);
      refused += done.kind == Done::Kind::kRefused ? 1 : 0;
    }
    return cookies;
  }
  uint64_t reads() { return world.nics.counts(0).reads; }
};

TEST(FabricReads, ARailSaysThatItHasThem) {
  for (const uint32_t version : {FI_VERSION(1, 19), FI_VERSION(2, 4), FI_VERSION(2, 5)}) {
    const FakeFabric nics({.version = version});
    const Opened opened(nics);
    ASSERT_FALSE(opened.rails.empty());
    const RailCaps& caps = opened.rails[0]->caps();
    for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
      EXPECT_NE(caps.opcodes & opcode_bit(opcode), 0u);
    }
    EXPECT_EQ(caps.max_outstanding_reads, kReadDepth);
    EXPECT_FALSE(caps.goes_on_after_refusal);
    EXPECT_EQ(caps.keeps_rights, version == FI_VERSION(2, 5));
  }
}

TEST(FabricReads, ARailWithoutThemRefusesTheWorkByName) {
  Connected test({.emulated_read = true});
  ASSERT_TRUE(test.connected);
  EXPECT_EQ(test.post(test.works(Opcode::kWrite, 1)), Status::kInvalid);
  EXPECT_THAT(test.pair.left->failure().what, HasSubstr("RailCaps::opcodes lacks its kind"));
}

TEST(FabricReads, ASilentWriteIsSentWhenAReadBehindItIsComplete) {
  Connected test;
  ASSERT_TRUE(test.connected);
  test.here.fill_pattern(5);
  ASSERT_EQ(test.post(test.works(Opcode::kWrite, 1)), Status::kOk);
  test.world.settle();
  EXPECT_EQ(test.reads(), 0u);
  EXPECT_THAT(test.sent(), IsEmpty()) << "acknowledged, and not visible yet";
  EXPECT_EQ(test.reads(), 1u);
  EXPECT_NE(test.there.bytes()[3], test.here.bytes()[3]);
  test.world.settle();
  EXPECT_THAT(test.sent(), ElementsAre(0));
  EXPECT_TRUE(std::equal(test.here.bytes().begin(), test.here.bytes().begin() + 8,
                         test.there.bytes().begin()));
  EXPECT_EQ(test.world.nics.write_flags().back() & FI_REMOTE_CQ_DATA, 0u);
  EXPECT_THAT(poll_all(*test.pair.right, &test.right), IsEmpty());
  test.sent();
  EXPECT_EQ(test.reads(), 1u) << "there is nothing to read behind";
}

// A poll takes up to 32 completions, and what is acknowledged while a read is under way waits for
// the next.
TEST(FabricReads, OneReadIsUnderWayAtATimeForAllThatIsAcknowledged) {
  Connected test;
  ASSERT_TRUE(test.connected);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(test.post(test.works(Opcode::kWrite, 64)), Status::kOk);
  test.world.settle();
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(test.sent(), IsEmpty());
    EXPECT_EQ(test.reads(), 1u);
  }
  test.world.settle();
  EXPECT_EQ(test.sent().size(), 32u);
  EXPECT_EQ(test.reads(), 2u);
  test.world.settle();
  size_t sent = 0;
  for (int i = 0; i < 10; ++i) sent += test.sent().size();
  EXPECT_EQ(sent, 3 * 64u - 32);
  EXPECT_EQ(test.reads(), 2u);
}

TEST(FabricReads, AReadBehindThatTheProviderIsTooBusyForIsPostedLater) {
  Connected test;
  ASSERT_TRUE(test.connected);
  test.world.nics.refuse_writes(1, 3, -FI_EAGAIN);
  ASSERT_EQ(test.post(test.works(Opcode::kWrite, 1)), Status::kOk);
  test.world.settle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(test.sent(), IsEmpty());
    EXPECT_EQ(test.reads(), 0u);
  }
  EXPECT_THAT(test.sent(), IsEmpty());
  test.world.settle();
  EXPECT_THAT(test.sent(), ElementsAre(0));
}

TEST(FabricReads, AReadBehindThatTheProviderRefusesIsAFailureByName) {
  Connected test;
  ASSERT_TRUE(test.connected);
  test.world.nics.refuse_writes(1, 1, -FI_ENOMEM);
  ASSERT_EQ(test.post(test.works(Opcode::kWrite, 1)), Status::kOk);
  const Error error = failure_of(test.world, *test.pair.left);
  EXPECT_THAT(error.what, HasSubstr("fi_readmsg behind silent writes, with 1 work not delivered: "
                                    "fake error 12 (12)"));
}

TEST(FabricReads, AFailureCountsASilentWriteThatMayNotBeVisible) {
  Connected test;
  ASSERT_TRUE(test.connected);
  ASSERT_EQ(test.post(test.works(Opcode::kWrite, 2)), Status::kOk);
  test.world.settle();
  test.sent();
  test.world.nics.fail_next(FI_EHOSTUNREACH, 13);  // the read behind
  const Error error = failure_of(test.world, *test.pair.left);
  EXPECT_THAT(error.what, HasSubstr("fake device status 13, 13), with 2 works not delivered; "));
}

// The provider has the first works of the batch, and carries them out.
TEST(FabricReads, OfAMixedBatchThatIsRefusedInTheMiddleNothingIsSent) {
  for (const size_t before : {1, 2, 5, 6}) {
    Connected test;
    ASSERT_TRUE(test.connected);
    std::vector<Work> works = test.works(Opcode::kRead, 8);
    for (size_t i = 0; i < works.size(); i += 2) works[i].opcode = Opcode::kWriteWithImmediate;
    test.world.nics.refuse_writes(before, 1, -FI_ENOMEM);
    size_t taken = 0;
    ASSERT_NE(test.pair.left->post(works, &taken), Status::kOk);
    EXPECT_EQ(taken, before);
    EXPECT_THAT(test.pair.left->failure().what,
                HasSubstr(before % 2 == 0 ? "fi_writemsg of 8" : "fi_readmsg of 8"));
    std::vector<Done> done;
    (void)failure_of(test.world, *test.pair.left, &done);
    EXPECT_THAT(done, IsEmpty());
  }
}

// That a read rings for a write that is held back is not relied on.
TEST(FabricReads, NoWriteIsHeldBackForARead) {
  Connected test;
  ASSERT_TRUE(test.connected);
  std::vector<Work> works = test.works(Opcode::kWriteWithImmediate, 6);
  works[2].opcode = works[5].opcode = Opcode::kRead;
  const auto before = test.world.nics.write_flags().size();
  ASSERT_EQ(test.post(works), Status::kOk);
  std::vector<bool> held;
  for (const uint64_t flags : test.world.nics.write_flags()) {
    held.push_back((flags & FI_MORE) != 0);
  }
  held.erase(held.begin(), held.begin() + static_cast<ptrdiff_t>(before));
  EXPECT_THAT(held, ElementsAre(true, false, true, false));
}

struct DeviceCase {
  uint8_t rights;
  bool by_key_of_flushers;
  bool may;
};

// A flusher reads device memory by a registration of its own, whose key opens nothing to a peer;
// that of channels has the rights of peers.
TEST(FabricReads, DeviceMemoryIsReadByAPeerOnlyWhereItMay) {
  for (const auto& [rights, by_key_of_flushers, may] :
       {DeviceCase{kRemoteWrite, false, false}, DeviceCase{kRemoteRead, false, true},
        DeviceCase{kRemoteWrite | kRemoteRead, true, false}}) {
    FakeFabricOptions options = in_order();
    options.device_memory = true;
    Connected test(options);
    ASSERT_TRUE(test.connected);
    std::vector<std::byte> memory(64, std::byte{7});
    MemoryRange range{memory.data(), memory.size(), MemoryKind::kCuda};
    range.rights = rights;
    const auto keys = test.world.right->register_memory(range);
    ASSERT_TRUE(keys) << keys.error().what;
    const uint64_t of_flushers = test.world.nics.newest_key();
    ASSERT_NE(of_flushers, keys->remote);
    std::vector<Work> read = test.works(Opcode::kRead, 1);
    read[0].remote_address = reinterpret_cast<uint64_t>(memory.data());
    read[0].remote_key = by_key_of_flushers ? of_flushers : keys->remote;
    ASSERT_EQ(test.post(read), Status::kOk);
    test.world.settle();
    EXPECT_EQ(test.sent().size(), may ? 1u : 0u);
    EXPECT_EQ(test.refused, may ? 0u : 1u);
    EXPECT_EQ(test.here.bytes()[7], std::byte{may ? uint8_t{7} : uint8_t{0}});
    auto flusher = test.world.right->open_flusher();
    ASSERT_TRUE(flusher && *flusher);
    ASSERT_EQ((*flusher)->begin(memory.data(), 0, *keys), Status::kOk);
    test.world.settle();
    uint64_t completed = 0;
    EXPECT_EQ((*flusher)->poll(&completed), Status::kOk) << (*flusher)->failure().what;
    EXPECT_EQ(completed, 1u);
    test.world.right->deregister_memory(*keys);
  }
}

}  // namespace
}  // namespace slime::fabric
