// Which NICs of a host form one device.
#include "devices/device_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "devices/device.h"
#include "test/support/fake_rail.h"
#include "test/topology/made_up_host.h"

namespace slime::test {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

// NICs are told apart by their GUID.
RailCaps nic(const std::string& name, uint64_t guid, const std::string& path = "") {
  RailCaps caps = fake_caps(name, guid);
  caps.transport = "tcp";
  caps.pci_path = path;
  return caps;
}
RailCaps with_speed(RailCaps caps, uint32_t mbps) {
  caps.speed_mbps = mbps;
  return caps;
}

class DeviceGroups : public testing::Test {
 protected:
  // The names of the rails of each device, by the rules (0) or by number.
  std::vector<Names> group(const std::vector<RailCaps>& all, size_t nics_per_device = 0,
                           const std::string& sysfs_root = "/nonexistent") {
    rails_.clear();
    for (const RailCaps& caps : all) rails_.push_back(std::make_unique<FakeRail>(caps));
    std::vector<Names> names;
    reasons_.clear();
    for (const DeviceGroup& group : group_rails(rails_, nics_per_device, sysfs_root)) {
      names.emplace_back();
      for (const Rail* rail : group.rails) names.back().push_back(rail->caps().name);
      reasons_.push_back(group.reason);
    }
    return names;
  }

  std::vector<std::unique_ptr<Rail>> rails_;
  Names reasons_;
};

TEST_F(DeviceGroups, VirtualNicsOfTcpAreOneDevice) {
  EXPECT_THAT(group({nic("eth0", 1), nic("eth1", 2), nic("eth2", 3)}),
              ElementsAre(Names{"eth0", "eth1", "eth2"}));
  EXPECT_THAT(reasons_, ElementsAre("3 NICs without a PCI function"));
  EXPECT_THAT(group({nic("eth0", 1)}), ElementsAre(Names{"eth0"}));
  EXPECT_THAT(reasons_, ElementsAre(""));
}

TEST_F(DeviceGroups, RailsOfOtherTransportsStayWithNccl) {
  RailCaps first = nic("mlx5_0", 1), second = nic("mlx5_1", 2);
  first.transport = second.transport = "verbs";
  EXPECT_EQ(group({first, second}).size(), 2u);
  EXPECT_THAT(reasons_, ElementsAre("", ""));
}

TEST_F(DeviceGroups, ANumberCountsNicsWithAllTheirRails) {
  const std::vector<RailCaps> uneven{nic("eth0.0", 1), nic("eth0.1", 1), nic("eth0.2", 1),
                                     nic("eth0.3", 1), nic("eth1", 2),   nic("eth2", 3)};
  EXPECT_THAT(group(uneven, 2),
              ElementsAre(Names{"eth0.0", "eth0.1", "eth0.2", "eth0.3", "eth1"}, Names{"eth2"}));
  EXPECT_THAT(reasons_, ElementsAre("2 NICs by NCCL_SLIME_RAILS_PER_DEVICE", ""));
  EXPECT_EQ(group(uneven, 1).size(), 3u);
  EXPECT_EQ(group(uneven, 64).size(), 1u);
}

// A link has kMaxRails rails at most.
TEST_F(DeviceGroups, ADeviceOfManyNicsTakesFewerRailsOfEach) {
  std::vector<RailCaps> wide, many;
  for (uint64_t guid = 1; guid <= 4; ++guid) {
    for (int socket = 0; socket < 16; ++socket) {
      wide.push_back(nic("eth" + std::to_string(guid) + "." + std::to_string(socket), guid));
    }
  }
  for (uint64_t guid = 1; guid <= kMaxRails + 1; ++guid) {
    many.push_back(nic("eth" + std::to_string(guid), guid));
  }
  for (const size_t number : {0, 4}) {
    const auto groups = group(wide, number);
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].size(), kMaxRails);
    EXPECT_EQ(std::ranges::count_if(
                  groups[0], [](const std::string& name) { return name.starts_with("eth4."); }),
              kMaxRails / 4);
  }
  for (const size_t number : {0, 64}) {
    const auto groups = group(many, number);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].size(), kMaxRails);
    EXPECT_EQ(groups[1].size(), 1u);
  }
}

TEST_F(DeviceGroups, ASlowPortForManagementStaysByItself) {
  EXPECT_THAT(group({with_speed(nic("data0", 1), 25000), with_speed(nic("mgmt", 2), 1000),
                     with_speed(nic("data1", 3), 25000)}),
              ElementsAre(Names{"data0", "data1"}, Names{"mgmt"}));
  EXPECT_EQ(group({with_speed(nic("a", 1), 10000), with_speed(nic("b", 2), 1000)}).size(), 2u);
  EXPECT_EQ(group({with_speed(nic("a", 1), 10000), with_speed(nic("b", 2), 2500)}).size(), 1u);
  // The speed of a NIC is that of all its sockets.
  const RailCaps socket = with_speed(nic("a.0", 1), 8000);
  EXPECT_EQ(group({socket, socket, with_speed(nic("b", 2), 1000)}).size(), 2u);
}

// They have the address, and so the GUID, of their bond.
TEST_F(DeviceGroups, VlansOfOneNicDoNotCountTwice) {
  RailCaps vlan = nic("bond0.100", 1), other = nic("bond0.200", 1);
  vlan.oob_address = "10.0.1.1";
  other.oob_address = "10.0.2.1";
  EXPECT_THAT(group({nic("bond0", 1), vlan, other, nic("bond1", 2)}),
              ElementsAre(Names{"bond0", "bond1"}, Names{"bond0.100"}, Names{"bond0.200"}));
}

TEST_F(DeviceGroups, WithoutGpusNicsOfOneNodeAreEquallyNear) {
  MadeUpHost host;
  const auto at = [&](const char* name, uint64_t guid, const char* path, int node) {
    return nic(name, guid, host.add_nic(path, node));
  };
  EXPECT_THAT(group({at("a", 1, "pci0000:00/0000:00:01.0/0000:01:00.0", 0),
                     at("b", 2, "pci0000:40/0000:40:01.0/0000:41:00.0", 1),
                     at("c", 3, "pci0000:20/0000:20:01.0/0000:21:00.0", 0), nic("veth", 4)},
                    0, host.root()),
              ElementsAre(Names{"a", "c"}, Names{"b"}, Names{"veth"}));
  EXPECT_EQ(reasons_.front(), "2 NICs of NUMA node 0");
}

// Of kernels and virtual machines that do not say the node.
TEST_F(DeviceGroups, WithoutANodeNicsBelowOneHostBridgeAre) {
  MadeUpHost host;
  host.add_node(0, "0-3", 0);
  host.add_node(1, "4-7", 1);
  const auto at = [&](const char* name, uint64_t guid, const char* path) {
    return nic(name, guid, host.add_nic(path, -1));
  };
  EXPECT_THAT(group({at("a", 1, "pci0000:00/0000:00:01.0"), at("b", 2, "pci0000:00/0000:00:02.0"),
                     at("c", 3, "pci0001:00/0001:00:01.0")},
                    0, host.root()),
              ElementsAre(Names{"a", "b"}, Names{"c"}));
  EXPECT_EQ(reasons_.front(), "2 NICs below pci0000:00");
}

TEST_F(DeviceGroups, GpusKeepTheNicsThatAreTheirs) {
  const DgxLikeHost host;
  std::vector<RailCaps> all;
  for (size_t i = 0; i < host.nics.size(); ++i) {
    all.push_back(nic("eth" + std::to_string(i), i + 1, host.nics[i]));
  }
  all.push_back(nic("storage", 100, host.storage_nic));
  EXPECT_THAT(group(all, 0, host.root()),
              ElementsAre(Names{"eth0", "eth1"}, Names{"eth2", "eth3"}, Names{"eth4", "eth5"},
                          Names{"eth6", "eth7"}, Names{"storage"}));
  EXPECT_EQ(reasons_.front(), "2 NICs of NUMA node 0, equally far from each GPU");
}

}  // namespace
}  // namespace slime::test
