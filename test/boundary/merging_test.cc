// Devices that NCCL merges into one (NIC fusion).
#include <cstring>

#include "test/boundary/net.h"

namespace slime::boundary {
namespace {

class Merging : public EveryVersion {
 protected:
  void SetUp() override {
    set("NCCL_SLIME_RAILS_PER_IF", "2");
    set("NCCL_SLIME_RAILS_PER_DEVICE", "1");
    ASSERT_EQ(net_.init(), nccl::kSuccess);
    ASSERT_EQ(net_.merge(&merged_, {0, 1}), nccl::kSuccess) << Log::text();
  }
  void TearDown() override { finalize(); }

  int merged_ = -1;
};
SLIME_FOR_VERSIONS(Merging, 9, 10, 11, 12);

TEST_P(Merging, TwoDevicesBecomeOneThatWorks) {
  int again = -1, count = 0;
  ASSERT_EQ(net_.merge(&again, {0, 1}), nccl::kSuccess);
  EXPECT_EQ(merged_, 2);
  EXPECT_EQ(again, 2) << "the same set is the same device";
  ASSERT_EQ(net_.devices(&count), nccl::kSuccess);
  EXPECT_EQ(count, 3);
  AnyProperties properties;
  ASSERT_EQ(net_.properties(merged_, &properties), nccl::kSuccess);
  EXPECT_EQ(properties.members, (std::vector<int>{0, 1}));
  Pair pair(net_, merged_);
  ASSERT_TRUE(pair.connected);
  Buffer from(net_, pair.send, 1 << 20), to(net_, pair.recv, 1 << 20);
  from.fill(3);
  Open sent, received;
  ASSERT_TRUE(transfer(net_, pair, from, to, from.bytes, &sent, &received)) << Log::text();
  EXPECT_EQ(memcmp(from.data(), to.data(), from.bytes), 0);
}

TEST_P(Merging, MemoryOfAnotherDeviceIsRefused) {
  Pair one(net_, 0), two(net_, merged_);
  ASSERT_TRUE(one.connected && two.connected);
  Buffer buffer(net_, one.send, 4096);
  void* request = nullptr;
  EXPECT_EQ(net_.isend(two.send, buffer.data(), 8, 0, buffer.mhandle, &request),
            nccl::kInvalidArgument);
  EXPECT_EQ(Log::count(nccl::kLogWarn, "another device"), 1u) << Log::text();
  EXPECT_EQ(net_.dereg(two.send, buffer.mhandle), nccl::kInvalidArgument);
}

}  // namespace
}  // namespace slime::boundary
