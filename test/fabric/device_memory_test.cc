// Device memory on a libfabric rail, as a DMA-BUF or by its address, and the reads behind what
// arrived there.
#include "test/support/device_memory.h"

#include <unistd.h>

#include <thread>

#include "test/fabric/support.h"
#include "test/support/kept_warnings.h"

namespace slime::fabric {
namespace {

using test::DeviceMemory;
using test::work_between;

constexpr size_t kPage = 4'096;
constexpr uint64_t kRoom = 16;
constexpr int kCudaApi = 10;

FakeFabricOptions with_devices() { return {.device_memory = true, .dma_bufs = true}; }

RailCaps caps_with(const FakeFabricOptions& options, const std::string& provider = "efa") {
  const FakeFabric nics(options);
  const Opened opened(nics, fabric_settings(provider));
  EXPECT_THAT(opened.notes, IsEmpty());
  EXPECT_THAT(nics.violations(), IsEmpty());
  return opened.rails.empty() ? RailCaps() : opened.rails[0]->caps();
}

bool takes_addresses(const RailCaps& caps) { return takes(caps, {.kind = MemoryKind::kCuda}); }

TEST(FabricDeviceMemory, IsTakenWhereTheNicUsesItWithoutCopies) {
  EXPECT_TRUE(takes_addresses(caps_with(with_devices())));
  EXPECT_FALSE(takes_addresses(caps_with({}))) << "libfabric has no FI_HMEM here";
  EXPECT_THAT(caps_with({}).reason, HasSubstr("; no GPU memory: this libfabric finds no GPU"));
  for (const int option : {int{FI_OPT_FI_HMEM_P2P}, kCudaApi}) {
    FakeFabricOptions options = with_devices();
    options.refused = {{option, -FI_EOPNOTSUPP}};
    const RailCaps caps = caps_with(options);
    EXPECT_FALSE(takes_addresses(caps)) << "the provider would copy it by calls of CUDA";
    EXPECT_FALSE(caps.dma_buf);
    EXPECT_THAT(caps.reason, HasSubstr("; no GPU memory: the provider would copy it"));
  }
}

TEST(FabricDeviceMemory, IsNotAskedOfSoftware) {
  FakeFabricOptions options = with_devices();
  options.provider = "tcp;ofi_rxm";
  options.nics = {{.name = "lo", .on_pci = false, .has_link = false}};
  EXPECT_FALSE(takes_addresses(caps_with(options, "tcp;ofi_rxm")));
}

TEST(FabricDeviceMemory, CapsSayWhetherDmaBufsAreTaken) {
  EXPECT_TRUE(caps_with(with_devices()).dma_buf);
  EXPECT_FALSE(caps_with({.device_memory = true}).dma_buf) << "its driver or its kernel knows none";
  FakeFabricOptions old = with_devices();
  old.version = FI_VERSION(1, 19);
  EXPECT_FALSE(caps_with(old).dma_buf) << "libfabric knows none";
  EXPECT_TRUE(takes_addresses(caps_with(old)));
}

// Such a provider may refuse every address.
TEST(FabricDeviceMemory, UpTo24AnAddressIsNotTakenWhereADmaBufIs) {
  FakeFabricOptions old = with_devices();
  old.version = FI_VERSION(2, 4);
  TestNics world(old);
  const RailCaps& caps = world.left->caps();
  EXPECT_TRUE(caps.dma_buf);
  EXPECT_FALSE(takes_addresses(caps));
  EXPECT_NE(*world.left->open_flusher(), nullptr);
}

TEST(FabricDeviceMemory, WhatIsNotTakenIsRefusedByName) {
  TestNics world;
  DeviceMemory memory;
  std::byte bytes[8];
  for (const MemoryRange& range :
       {memory.range(), MemoryRange{bytes, sizeof bytes, MemoryKind::kCuda}}) {
    const auto keys = world.left->register_memory(range);
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().status, Status::kUnsupported);
    EXPECT_THAT(keys.error().what, testing::StartsWith("rail efa0 (provider efa of libfabric 2.6; "
                                                       "no GPU memory: "));
    EXPECT_THAT(keys.error().what, HasSubstr(range.dma_buf >= 0 ? "as a DMA-BUF, which needs "
                                                                : "as GPU memory by its address"));
  }
  EXPECT_EQ(*world.left->open_flusher(), nullptr);
}

TEST(FabricDeviceMemory, WhatIsNoDmaBufIsRefusedByName) {
  TestNics world(with_devices());
  DeviceMemory memory;
  MemoryRange closed = memory.range();
  closed.dma_buf = 1'000'000;
  const size_t before = world.nics.objects();
  const auto keys = world.left->register_memory(closed);
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().code, FI_EBADF);
  EXPECT_THAT(keys.error().what, HasSubstr("rail efa0: 16384 bytes at "));
  EXPECT_THAT(keys.error().what, HasSubstr("cannot be registered as a DMA-BUF"));
  EXPECT_EQ(world.nics.objects(), before);
}

TEST(FabricDeviceMemory, WorksGoFromDmaBufToDmaBufAndAreSeenOnceTheyAreFlushed) {
  TestNics world(with_devices());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  DeviceMemory from, to;
  const std::vector<std::byte> sent(kPage, std::byte{0x5a}), zeros(kPage);
  from.fill(kPage, sent);
  const MemoryRange source = from.range(kPage, kPage);
  MemoryRange target = to.range(2 * kPage, kPage);
  target.dma_buf = ::dup(target.dma_buf);
  const auto source_keys = world.left->register_memory(source);
  const auto target_keys = world.right->register_memory(target);
  ASSERT_TRUE(source_keys && target_keys);
  from.close_file();  // no registration needs it, nor a flusher's
  ::close(target.dma_buf);
  const auto flusher = world.right->open_flusher();
  ASSERT_TRUE(flusher && *flusher);
  ASSERT_EQ(post_one(*pair.left, work_between(source, *source_keys, target, *target_keys)),
            Status::kOk);
  world.settle();
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*pair.right, &status).size(), 1u);
  EXPECT_EQ(to.read(2 * kPage, kPage), zeros) << "it has arrived, and may not be seen yet";
  ASSERT_EQ((*flusher)->begin(static_cast<std::byte*>(target.address), 0, *target_keys),
            Status::kOk);
  world.settle();
  uint64_t completed = 0;
  EXPECT_EQ((*flusher)->poll(&completed), Status::kOk) << (*flusher)->failure().what;
  EXPECT_EQ(completed, 1u);
  EXPECT_EQ(to.read(2 * kPage, kPage), sent);
  EXPECT_EQ(to.read(kPage, kPage), zeros);
  EXPECT_EQ(to.read(3 * kPage, kPage), zeros);
  world.left->deregister_memory(*source_keys);
  world.right->deregister_memory(*target_keys);
}

// With memory to read.
struct TestFlusher final : test::LeftFlusher<TestNics> {
  explicit TestFlusher(const FakeFabricOptions& options = with_devices())
      : LeftFlusher(options), keys(register_memory()) {}
  ~TestFlusher() override {
    flusher = nullptr;
    world.left->deregister_memory(keys);
  }

  MemoryKeys register_memory() {
    auto made = world.left->register_memory({bytes, sizeof bytes, MemoryKind::kCuda});
    if (!made) std::abort();
    return *made;
  }
  Status begin(const MemoryKeys& of) { return flusher->begin(bytes, 0, of); }
  Status begin() override { return begin(keys); }

  std::byte bytes[64] = {};
  MemoryKeys keys;
};

TEST(FabricFlusher, CountsItsReadsAndSaysWhenItIsFull) {
  TestFlusher test;
  uint64_t begun = 0;
  while (test.begin() == Status::kOk) ++begun;
  EXPECT_EQ(begun, kRoom);
  EXPECT_EQ(test.begin(), Status::kAgain);
  EXPECT_EQ(test.poll(), Status::kOk);
  EXPECT_EQ(test.completed, 0u);
  EXPECT_TRUE(test.await(kRoom));
  EXPECT_EQ(test.begin(), Status::kOk);
}

TEST(FabricFlusher, ReadsThatTheNicIsTooBusyForArePostedLater) {
  FakeFabricOptions options = with_devices();
  options.busy_percent = 90;
  TestFlusher test(options);
  for (uint64_t i = 0; i < kRoom; ++i) ASSERT_EQ(test.begin(), Status::kOk);
  EXPECT_TRUE(test.await(kRoom)) << test.flusher->failure().what;
  EXPECT_GT(test.world.nics.counts(0).refused, 0u);
}

TEST(FabricFlusher, AReadThatTheProviderRefusesIsAFailureByName) {
  TestFlusher test;
  test.world.nics.refuse_writes(0, 1, -FI_EINVAL);
  EXPECT_NE(test.begin(), Status::kOk);
  EXPECT_THAT(test.failure(),
              HasSubstr("rail efa0, for flushes: fi_readmsg failed: fake error 22"));
  EXPECT_EQ(test.completed, 0u);
}

// As while the port is down.
TEST(FabricFlusher, AReadThatFailsIsRepeatedAndThoseAfterItAreCountedThen) {
  const test::KeptWarnings warnings("a flush repeats a read at 0x");
  FakeFabricOptions options = with_devices();
  options.reorders = false;
  TestFlusher test(options);
  for (uint64_t round = 1; round <= 2; ++round) {
    for (uint64_t i = 0; i < kRoom; ++i) ASSERT_EQ(test.begin(), Status::kOk);
    test.world.nics.fail_next(FI_EHOSTUNREACH, 13);
    test.world.settle();
    for (int i = 0; i < 2; ++i) ASSERT_EQ(test.poll(), Status::kOk);  // the failure comes by itself
    EXPECT_EQ(test.completed, (round - 1) * kRoom);
    EXPECT_EQ(test.begin(), Status::kAgain);
    ASSERT_TRUE(test.await(round * kRoom)) << test.flusher->failure().what;
    ASSERT_EQ(warnings.lines().size(), round);
  }
  EXPECT_THAT(warnings.lines().front(), HasSubstr("rail efa0: a flush repeats a read at "));
  EXPECT_THAT(warnings.lines().front(),
              HasSubstr("fake error 113 (113; provider efa: fake device status 13, 13)"));
}

// A stranger can reach its endpoint, too.
TEST(FabricFlusher, CompletionsThatAreNoneOfItsReadsAreIgnored) {
  TestFlusher test;
  test.world.nics.disturb(0);
  ASSERT_EQ(test.begin(), Status::kOk);
  EXPECT_TRUE(test.await(1)) << test.flusher->failure().what;
}

TEST(FabricFlusher, AReadOutsideRegisteredMemoryIsRefusedByName) {
  TestFlusher test;
  EXPECT_EQ(test.flusher->begin(test.bytes + sizeof test.bytes, sizeof test.bytes, test.keys),
            Status::kInvalid);
  EXPECT_THAT(test.flusher->failure().what, HasSubstr("rail efa0, for flushes: a read at 0x"));
  EXPECT_EQ(test.poll(), Status::kInvalid) << "it stays so";
}

TEST(FabricFlusher, AReadOfMemoryThatWasDeregisteredMeanwhileIsComplete) {
  TestFlusher test;
  test.world.nics.refuse_writes(2, 1, -FI_EAGAIN);  // the third waits here
  for (int i = 0; i < 2; ++i) {
    const MemoryKeys gone = test.register_memory();
    ASSERT_EQ(test.begin(gone), Status::kOk);
    ASSERT_EQ(test.begin(), Status::kOk);
    test.world.left->deregister_memory(gone);
  }
  EXPECT_TRUE(test.await(4)) << test.flusher->failure().what;
}

TEST(FabricFlusher, HostMemoryIsReadToo) {
  TestFlusher test;
  TestBuffer host(*test.world.left, 64);
  ASSERT_EQ(test.flusher->begin(host.data(), 0, host.keys()), Status::kOk);
  EXPECT_TRUE(test.await(1)) << test.flusher->failure().what;
}

TEST(FabricFlusher, AnotherThreadRegistersAndDeregistersMeanwhile) {
  TestFlusher test;
  std::thread other([&test] {
    for (int i = 0; i < 200; ++i) {
      const TestBuffer host(*test.world.left, 64);
      const MemoryKeys gone = test.register_memory();
      test.world.left->deregister_memory(gone);
    }
  });
  for (uint64_t begun = 1; begun <= 200; ++begun) {
    EXPECT_EQ(test.begin(), Status::kOk);
    EXPECT_TRUE(test.await(begun)) << test.flusher->failure().what;
  }
  other.join();
}

TEST(FabricFlusher, WithoutAnEndpointNoneOpensAndNothingIsLeft) {
  FakeFabricOptions options = with_devices();
  options.ep_cnt = 1;
  TestNics world(options);
  const auto first = world.left->open_flusher();
  ASSERT_TRUE(first) << first.error().what;
  const size_t before = world.nics.objects();
  const auto second = world.left->open_flusher();
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("rail efa0: fi_endpoint failed"));
  EXPECT_EQ(world.nics.objects(), before);
}

}  // namespace
}  // namespace slime::fabric
