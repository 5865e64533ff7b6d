// Memory that is registered on a verbs rail.
#include <cerrno>

#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

TEST(VerbsMemory, EachRegistrationHasKeysOfItsOwn) {
  TestNics world;
  const size_t before = world.nics.objects();
  std::vector<std::byte> memory(100);
  const auto first = world.left->register_memory({memory.data(), 100});
  const auto second = world.left->register_memory({memory.data(), 100});
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->local, second->local);
  EXPECT_NE(first->remote, second->remote);
  EXPECT_EQ(first->remote >> 32, 0u) << "the NIC's are of 32 bits";
  EXPECT_EQ(world.nics.objects(), before + 2);
  world.left->deregister_memory(*first);
  world.left->deregister_memory(*second);
  EXPECT_EQ(world.nics.objects(), before);
}

TEST(VerbsMemory, WhatIsNoRangeIsRefusedByName) {
  TestNics world;
  std::byte memory[8];
  for (const MemoryRange& range :
       {MemoryRange{nullptr, 8}, MemoryRange{memory, 0}, MemoryRange{memory, SIZE_MAX}}) {
    const auto keys = world.left->register_memory(range);
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().status, Status::kInvalid);
    EXPECT_THAT(keys.error().what, HasSubstr("rail fake0: cannot register"));
  }
}

TEST(VerbsMemory, DeviceMemoryIsRefusedByName) {
  TestNics world;
  std::byte memory[8];
  MemoryRange dma_buf{memory, 8};
  dma_buf.dma_buf = 0;
  for (const MemoryRange& range : {MemoryRange{memory, 8, MemoryKind::kCuda}, dma_buf}) {
    const auto keys = world.left->register_memory(range);
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().status, Status::kUnsupported);
    EXPECT_THAT(keys.error().what, HasSubstr("of device memory"));
  }
}

TEST(VerbsMemory, WithoutLockedMemoryTheLimitIsNamed) {
  TestNics world;
  std::byte memory[8];
  const size_t before = world.nics.objects();
  world.nics.fail_registrations(ENOMEM);
  const auto keys = world.left->register_memory({memory, 8});
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().status, Status::kNoMemory);
  EXPECT_EQ(keys.error().code, ENOMEM);
  EXPECT_THAT(keys.error().what, HasSubstr("rail fake0: 8 bytes"));
  EXPECT_THAT(keys.error().what, HasSubstr("`ulimit -l`"));
  EXPECT_EQ(world.nics.objects(), before);
  world.nics.fail_registrations(0);
  EXPECT_TRUE(world.left->register_memory({memory, 8})) << "it may be asked again";
}

// EAGAIN is the kernel's word for a limit of the cgroup: a failure, and no invitation to try again.
TEST(VerbsMemory, ALimitOfTheCgroupIsNamed) {
  TestNics world;
  std::byte memory[8];
  world.nics.fail_registrations(EAGAIN);
  const auto keys = world.left->register_memory({memory, 8});
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().status, Status::kSystem);
  EXPECT_EQ(keys.error().code, EAGAIN);
  EXPECT_THAT(keys.error().what, HasSubstr("rail fake0: 8 bytes"));
  EXPECT_THAT(keys.error().what, HasSubstr("rdma.max of this process's cgroup"));
  EXPECT_THAT(keys.error().what, Not(HasSubstr("ulimit")));
  const auto channel = world.left->open_channel({});
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().status, Status::kSystem);
  EXPECT_THAT(channel.error().what, HasSubstr("rdma.max of this process's cgroup"));
}

TEST(VerbsMemory, AKeyEndsWithItsRegistration) {
  for (const uint32_t length : {8u, 4'096u}) {
    TestNics world;
    TestPair pair(world);
    ASSERT_TRUE(pair.connect());
    TestBuffer from(*world.left, length), to(*world.right, length);
    const Work work = work_of(from, to, length);
    ASSERT_EQ(post_one(*pair.left, work), Status::kOk);
    from.deregister();
    TestBuffer again(*world.left, length);
    EXPECT_EQ(post_one(*pair.left, work), Status::kInvalid) << length;
  }
}

TEST(VerbsMemory, DeregisteringTwiceDoesNothing) {
  TestNics world;
  TestBuffer memory(*world.left, 8);
  memory.deregister();
  memory.deregister();
  world.left->deregister_memory({});
  world.left->deregister_memory({UINT64_MAX, 0});
}

TEST(VerbsMemory, ARailEndsWithWhatIsStillRegistered) {
  TestNics world;
  static std::byte memory[8];
  EXPECT_TRUE(world.left->register_memory({memory, 8}));
}  // TestNics looks for what is left

}  // namespace
}  // namespace slime::verbs
