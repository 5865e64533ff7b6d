// The traffic class in the configuration of a communicator reaches the sockets of its links.
#include <map>

#include "test/boundary/support/coll_switch.h"
#include "test/boundary/support/net.h"
#include "test/support/own_sockets.h"

namespace slime::boundary {
namespace {

using test::count_marked;

// Copies of their own, as a warning comes once for each.
class TrafficClass : public NetTest, public testing::WithParamInterface<int> {
 protected:
  TrafficClass() : NetTest(own_copy(GetParam()), GetParam()) {}
  static const Plugin& own_copy(int version) {
    static std::map<int, Plugin> copies;
    return copies[version];
  }
  // Before v11 NCCL passes it to the connecting end only.
  static size_t marked_ends() { return GetParam() >= 11 ? 2 : 1; }
};
SLIME_FOR_VERSIONS(TrafficClass, 10, 11, 12);

TEST_P(TrafficClass, OfTheConfiguration) {
  ASSERT_EQ(net_.init(Log::logger(), 0x68), nccl::kSuccess);
  {
    Pair pair(net_);
    ASSERT_TRUE(pair.connected);
    EXPECT_EQ(count_marked(0x68), marked_ends());
  }
  EXPECT_EQ(Log::count(nccl::kLogWarn), 0u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogInfo, "traffic class 104, and gets 104"),
            GetParam() >= 11 ? 1u : 0u)
      << Log::text();
  finalize();
}

TEST_P(TrafficClass, TheSettingComesFirst) {
  set("NCCL_SLIME_TRAFFIC_CLASS", "32");
  ASSERT_EQ(net_.init(Log::logger(), 0x68), nccl::kSuccess);
  {
    Pair pair(net_);
    ASSERT_TRUE(pair.connected);
    EXPECT_EQ(count_marked(32), 2u);
    EXPECT_EQ(count_marked(0x68), 0u);
  }
  finalize();
}

TEST_P(TrafficClass, WarnsOnceOfOneThatCannotBe) {
  ASSERT_EQ(net_.init(Log::logger(), 256), nccl::kSuccess);
  for (int round = 0; round < 2; ++round) {
    Pair pair(net_);
    EXPECT_TRUE(pair.connected) << "what cannot be marked is sent all the same";
  }
  EXPECT_EQ(Log::count(nccl::kLogWarn, "trafficClass 256"), 1u) << Log::text();
  EXPECT_EQ(Log::count(nccl::kLogWarn, "DSCP times 4"), 1u) << Log::text();
  finalize();
}

// NCCL's CollNet interface has no configuration: it is that of the network with the same id.
class MarkedCollSwitch : public CollSwitch {
 protected:
  void settings() override {
    CollSwitch::settings();
    traffic_class_ = 0x48;
  }
};
SLIME_FOR_VERSIONS(MarkedCollSwitch, 11, 12);

TEST_P(MarkedCollSwitch, PacketsToTheSwitchAndTheRing) {
  EXPECT_EQ(count_marked(0x48, SOCK_DGRAM), 2u) << "one socket per rank";
  EXPECT_EQ(count_marked(0x48), 4u) << "two links of two ends";
}

}  // namespace
}  // namespace slime::boundary
