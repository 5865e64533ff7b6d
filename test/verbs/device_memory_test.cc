// Device memory on a verbs rail, as a DMA-BUF or by its address, and how the NIC may write memory.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "test/support/device_memory.h"
#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

using test::DeviceMemory;
using test::work_between;

constexpr size_t kPage = 4'096;

FakeVerbsOptions with_dma_bufs() {
  FakeVerbsOptions options;
  options.dma_bufs = true;
  return options;
}

TEST(VerbsDeviceMemory, CapsSayWhetherDmaBufsAreTaken) {
  FakeVerbsOptions old = with_dma_bufs();
  old.old_library = true;
  EXPECT_TRUE(TestNics(verbs_settings(), with_dma_bufs()).left->caps().dma_buf);
  EXPECT_FALSE(TestNics().left->caps().dma_buf) << "its driver or its kernel knows none";
  EXPECT_FALSE(TestNics(verbs_settings(), old).left->caps().dma_buf) << "libibverbs knows none";
}

TEST(VerbsDeviceMemory, WorksGoFromDmaBufToDmaBuf) {
  TestNics world(verbs_settings(), with_dma_bufs());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  DeviceMemory from, to;
  const std::vector<std::byte> sent(kPage, std::byte{0x5a});
  from.fill(kPage, sent);
  const MemoryRange source = from.range(kPage, kPage), target = to.range(2 * kPage, kPage);
  const auto source_keys = world.left->register_memory(source);
  const auto target_keys = world.right->register_memory(target);
  ASSERT_TRUE(source_keys && target_keys);
  ASSERT_EQ(post_one(*pair.left, work_between(source, *source_keys, target, *target_keys)),
            Status::kOk);
  world.settle();
  EXPECT_EQ(to.read(2 * kPage, kPage), sent);
  EXPECT_EQ(to.read(kPage, kPage), std::vector(kPage, std::byte{0}));
  EXPECT_EQ(to.read(3 * kPage, kPage), std::vector(kPage, std::byte{0}));
  auto flusher = world.right->open_flusher();
  ASSERT_TRUE(flusher);
  uint64_t completed = 0;
  EXPECT_EQ((*flusher)->begin(static_cast<std::byte*>(target.address), 0, *target_keys),
            Status::kOk);
  world.settle();
  EXPECT_EQ((*flusher)->poll(&completed), Status::kOk) << (*flusher)->failure().what;
  EXPECT_EQ(completed, 1u);
  world.left->deregister_memory(*source_keys);
  world.right->deregister_memory(*target_keys);
}

TEST(VerbsDeviceMemory, TheFileMayBeClosedOnceItIsRegistered) {
  TestNics world(verbs_settings(), with_dma_bufs());
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  DeviceMemory from, to;
  const auto source = world.left->register_memory(from.range());
  const auto target = world.right->register_memory(to.range());
  ASSERT_TRUE(source && target);
  const Work work = work_between(from.range(), *source, to.range(), *target);
  from.close_file();
  to.close_file();
  EXPECT_EQ(post_one(*pair.left, work), Status::kOk);
  world.settle();
  Status status = Status::kOk;
  EXPECT_EQ(poll_all(*pair.right, &status).size(), 1u);
}

TEST(VerbsDeviceMemory, WhatIsNoDmaBufIsRefusedByName) {
  TestNics world(verbs_settings(), with_dma_bufs());
  DeviceMemory memory;
  MemoryRange closed = memory.range(), crooked = memory.range();
  closed.dma_buf = 1'000'000;
  crooked.dma_buf_offset = 8;
  const size_t before = world.nics.objects();
  for (const auto& [range, code] : {std::pair(closed, EBADF), {crooked, EINVAL}}) {
    const auto keys = world.left->register_memory(range);
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().code, code);
    EXPECT_THAT(keys.error().what, HasSubstr("rail fake0: 16384 bytes at "));
    EXPECT_THAT(keys.error().what, HasSubstr("cannot be registered as a DMA-BUF"));
  }
  EXPECT_EQ(world.nics.objects(), before);
}

TEST(VerbsDeviceMemory, WithoutDmaBufsTheyAreRefusedByName) {
  TestNics world;
  DeviceMemory memory;
  const auto keys = world.left->register_memory(memory.range());
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().status, Status::kUnsupported);
  EXPECT_THAT(keys.error().what, HasSubstr("rail fake0: 16384 bytes of device memory at "));
  EXPECT_THAT(keys.error().what, HasSubstr("cannot be registered as a DMA-BUF: "));
}

// By its address it needs a module of the GPU's driver.
TEST(VerbsDeviceMemory, DmaBufsSayNothingOfAddresses) {
  TestNics world(verbs_settings(), with_dma_bufs());
  std::byte memory[8];
  const auto keys = world.left->register_memory({memory, 8, MemoryKind::kCuda});
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().what, HasSubstr("nvidia_peermem"));
}

TEST(VerbsDeviceMemory, AModuleOfTheGpusDriverAllowsAddresses) {
  for (const std::string module :
       {"", "module/nvidia_peermem/version", "kernel/mm/memory_peers/nv_mem/version",
        "kernel/mm/memory_peers/nv_mem_nc/version", "module/nvidia/version",
        "module/nvidia_peermem/refcnt"}) {
    SCOPED_TRACE(module);
    FakeVerbs nics;
    const std::filesystem::path path = nics.sysfs_root() + "/" + module;
    if (!module.empty()) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << "580.65.06\n";
    }
    const auto rails =
        open_verbs_rails(nics.symbols(), nics.sysfs_root(), verbs_settings(), nullptr);
    ASSERT_TRUE(rails && rails->size() == 2);
    std::byte memory[8];
    const MemoryRange range{memory, 8, MemoryKind::kCuda};
    const bool expected = module.ends_with("/version") && module != "module/nvidia/version";
    EXPECT_EQ(takes(rails->front()->caps(), range), expected);
    const size_t objects = nics.objects();
    EXPECT_EQ(rails->front()->register_memory(range).has_value(), expected);
    EXPECT_EQ(nics.objects() - objects, expected ? 2u : 0u) << "for peers and for flushes";
  }
}

unsigned access_with(int relaxed_ordering, bool old_library, bool dma_buf = false) {
  Settings settings = verbs_settings();
  settings.relaxed_ordering = relaxed_ordering;
  FakeVerbsOptions options = with_dma_bufs();
  options.old_library = old_library;
  TestNics world(settings, options);
  DeviceMemory device;
  std::byte memory[8];
  const auto keys =
      world.left->register_memory(dma_buf ? device.range() : MemoryRange{memory, sizeof memory});
  EXPECT_TRUE(keys) << keys.error().what;
  return keys ? world.nics.access_of(keys->remote) : 0;
}

TEST(VerbsRelaxedOrdering, IsAskedForWhereItIsKnownAndWished) {
  constexpr unsigned kStrict = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  for (const bool dma_buf : {false, true}) {
    EXPECT_EQ(access_with(0, false, dma_buf), kStrict);
    EXPECT_EQ(access_with(1, false, dma_buf), kStrict | IBV_ACCESS_RELAXED_ORDERING);
    EXPECT_EQ(access_with(2, false, dma_buf), kStrict | IBV_ACCESS_RELAXED_ORDERING);
  }
  for (const int wished : {0, 1, 2}) EXPECT_EQ(access_with(wished, true), kStrict) << wished;
  EXPECT_EQ(Settings().relaxed_ordering, 2);
}

// Nothing but a NIC can read at such an address: a CPU that tries ends its process.
TEST(VerbsDeviceMemory, SmallWorksFromItAreNotInline) {
  FakeVerbsOptions options;
  options.dma_bufs = true;
  TestNics world(verbs_settings(), options);
  TestPair pair(world);
  ASSERT_TRUE(pair.connect());
  constexpr size_t kPage = 4'096;
  const int file = ::memfd_create("device", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, kPage), 0);
  void* const address = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto keys = world.left->register_memory({address, kPage, MemoryKind::kCuda, file, 0});
  ASSERT_TRUE(keys);
  ASSERT_EQ(::pwrite(file, "12345678", 8, 0), 8);
  TestBuffer to(*world.right, 8);
  Work work;
  work.local = static_cast<const std::byte*>(address);
  work.local_key = keys->local;
  work.remote_address = reinterpret_cast<uint64_t>(to.data());
  work.remote_key = to.keys().remote;
  work.length = 8;
  EXPECT_EQ(post_one(*pair.left, work), Status::kOk);
  EXPECT_THAT(world.nics.violations(), IsEmpty());
  world.settle();
  EXPECT_EQ(std::memcmp(to.data(), "12345678", 8), 0);
  world.left->deregister_memory(*keys);
  (void)::close(file);
  (void)::munmap(address, kPage);
}

}  // namespace
}  // namespace slime::verbs
