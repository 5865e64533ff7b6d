// Devices that NCCL merges into one (NIC fusion).
#include <cstring>

#include "test/boundary/support/net.h"
#include "test/boundary/support/two_nics.h"

namespace slime::boundary {
namespace {

class Merging : public EveryVersion {
 protected:
  void open() {
    set("NCCL_SLIME_IFNAME", "one0,one1");
    set("NCCL_SLIME_RAILS_PER_DEVICE", "1");
    ASSERT_EQ(net_.init(), nccl::kSuccess);
  }
  void merge() {
    open();
    ASSERT_EQ(net_.merge(&merged_, {0, 1}), nccl::kSuccess) << Log::text();
  }
  int device_count() {
    int count = 0;
    EXPECT_EQ(net_.devices(&count), nccl::kSuccess);
    return count;
  }

  int merged_ = -1;
};
SLIME_FOR_VERSIONS(Merging, 9, 10, 11, 12);

TEST_P(Merging, TwoDevicesBecomeOneThatWorks) {
  on_two_nics(NicKind::kPci, [this] {
    merge();
    int again = -1;
    ASSERT_EQ(net_.merge(&again, {0, 1}), nccl::kSuccess);
    EXPECT_EQ(merged_, 2);
    EXPECT_EQ(again, 2) << "the same set is the same device";
    EXPECT_EQ(device_count(), 3);
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
  });
}

TEST_P(Merging, MemoryOfAnotherDeviceIsRefused) {
  on_two_nics(NicKind::kPci, [this] {
    merge();
    Pair one(net_, 0), two(net_, merged_);
    ASSERT_TRUE(one.connected && two.connected);
    Buffer buffer(net_, one.send, 4096);
    void* request = nullptr;
    EXPECT_EQ(net_.isend(two.send, buffer.data(), 8, 0, buffer.mhandle, &request),
              nccl::kInternalError);
    EXPECT_EQ(Log::count(nccl::kLogWarn, "another device"), 1u) << Log::text();
    EXPECT_EQ(net_.dereg_mr(two.send, buffer.mhandle), nccl::kInternalError);
  });
}

// NCCL 2.24 and 2.25 end on ncclInvalidUsage, and go on after any other error; from 2.26 on they go
// on after all. 2.24 to 2.26 ask for each device alone too.
TEST_P(Merging, VirtualDevicesStaySingleWithoutAWarning) {
  on_two_nics(NicKind::kVirtual, [this] {
    open();
    const int code = net_.merge(&merged_, {0, 1});
    EXPECT_NE(code, nccl::kSuccess);
    EXPECT_NE(code, nccl::kInvalidUsage);
    EXPECT_EQ(device_count(), 2);
    EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
    EXPECT_EQ(Log::count(nccl::kLogInfo, "2 devices without a PCI function"), 1u) << Log::text();
    EXPECT_EQ(net_.merge(&merged_, {1}), nccl::kSuccess);
    EXPECT_EQ(merged_, 1);
    finalize();
  });
}

// Neither knows how near the other is to GPUs, so they are equally near.
TEST_P(Merging, ByDefaultNicsThatAreEquallyNearAreOneDevice) {
  for (const NicKind kind : {NicKind::kVirtual, NicKind::kPci}) {
    on_two_nics(kind, [&] {
      set("NCCL_SLIME_IFNAME", "one0,one1");
      ASSERT_EQ(net_.init(), nccl::kSuccess);
      EXPECT_EQ(device_count(), 1);
      AnyProperties properties;
      ASSERT_EQ(net_.properties(0, &properties), nccl::kSuccess);
      EXPECT_EQ(std::string(properties.name), "one0+one1");
      const char* const why = kind == NicKind::kPci ? "one device: 2 NICs of NUMA node 0"
                                                    : "one device: 2 NICs without a PCI function";
      EXPECT_EQ(Log::count(nccl::kLogInfo, why), 1u) << Log::text();
    });
  }
}

}  // namespace
}  // namespace slime::boundary
