// What is read of a port, and the caps that follow.
#include "transports/verbs/device/port.h"

#include <filesystem>
#include <fstream>

#include "test/verbs/support.h"

namespace slime::verbs {
namespace {

std::shared_ptr<Nic> open_nic(FakeVerbs& nics) {
  ibv_device** const devices = nics.symbols().get_device_list(nullptr);
  auto nic = Nic::open(nics.symbols(), devices[0], nics.sysfs_root());
  nics.symbols().free_device_list(devices);
  EXPECT_TRUE(nic) << nic.error().what;
  return nic ? *nic : nullptr;
}

Port port_of(FakeVerbs& nics, int number = 1, const GidWish& wish = {}) {
  auto port = read_port(open_nic(nics), number, wish);
  EXPECT_TRUE(port) << port.error().what;
  EXPECT_EQ(port ? port->warning : "", "");
  return port ? *port : Port();
}

RailCaps caps_of(FakeVerbs& nics, int number = 1, const Settings& settings = {}) {
  return describe(port_of(nics, number), settings, "192.0.2.1");
}

FakeVerbsOptions infiniband() {
  FakeVerbsOptions options;
  options.ethernet = false;
  return options;
}

// Codes of PortInfo: widths 1, 2, 4, 8, 16 are 1, 4, 8, 12 and 2 lanes.
TEST(VerbsPort, SpeedIsLanesTimesSpeedOfOne) {
  constexpr uint8_t kSdr = 1, kDdr = 2, kQdr = 4, kFdr10 = 8, kFdr = 16, kEdr = 32, kHdr = 64,
                    kNdr = 128;
  EXPECT_EQ(speed_mbps(kSdr, 2), 10'000u);
  EXPECT_EQ(speed_mbps(kDdr, 2), 20'000u);
  EXPECT_EQ(speed_mbps(kQdr, 2), 40'000u);
  EXPECT_EQ(speed_mbps(kFdr10, 2), 40'000u);
  EXPECT_EQ(speed_mbps(kFdr, 2), 56'000u);
  EXPECT_EQ(speed_mbps(kEdr, 1), 25'000u);
  EXPECT_EQ(speed_mbps(kEdr, 2), 100'000u);
  EXPECT_EQ(speed_mbps(kEdr, 8), 300'000u);
  EXPECT_EQ(speed_mbps(kHdr, 16), 100'000u);
  EXPECT_EQ(speed_mbps(kHdr, 2), 200'000u);
  EXPECT_EQ(speed_mbps(kNdr, 2), 400'000u);
  EXPECT_EQ(speed_mbps(kNdr, 4), 800'000u);
}

TEST(VerbsPort, AnUnknownSpeedIsThatOfAModestPort) {
  EXPECT_EQ(speed_mbps(0, 0), 10'000u);
  EXPECT_EQ(speed_mbps(3, 2), 40'000u);
}

TEST(VerbsPort, WhatThePortSays) {
  FakeVerbsOptions options;
  options.active_speed = 64;
  options.mtu = IBV_MTU_1024;
  FakeVerbs nics(options);
  const Port port = port_of(nics);
  EXPECT_TRUE(port.ethernet);
  EXPECT_EQ(port.mtu, IBV_MTU_1024) << "the active one, not the most";
  EXPECT_EQ(port.speed_mbps, 200'000u);
  EXPECT_EQ(port.gid.index, 1);
  EXPECT_EQ(to_string(port.gid.gid), "::ffff:10.77.0.1");
  EXPECT_EQ(port.gid.type, GidType::kRoceV2);
  EXPECT_EQ(port.interface, "lo");
}

TEST(VerbsPort, AnInactivePortIsRefusedByName) {
  FakeVerbs nics;
  nics.set_link(0, false);
  const auto port = read_port(open_nic(nics), 1, {});
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().status, Status::kConfig);
  EXPECT_THAT(port.error().what, HasSubstr("fake0:1 is not active (state 1)"));
}

TEST(VerbsPort, APortWithoutAGidIsRefusedByName) {
  FakeVerbsOptions options;
  options.gids = {"::"};
  FakeVerbs nics(options);
  const auto port = read_port(open_nic(nics), 1, {});
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().what, HasSubstr("fake0:1: its GID table is empty"));
}

TEST(VerbsPort, AWarningNamesThePort) {
  FakeVerbs nics;
  GidWish wish;
  wish.index = 5;
  const auto port = read_port(open_nic(nics), 1, wish);
  ASSERT_TRUE(port);
  EXPECT_THAT(port->warning, HasSubstr("fake0:1: GID index 5 ("));
}

TEST(VerbsPort, TypesOfGidsAreReadFromTheirFiles) {
  FakeVerbsOptions options;
  options.gids = {"::ffff:10.0.0.1", "::ffff:10.0.0.1"};
  FakeVerbs nics(options);
  EXPECT_EQ(port_of(nics).gid.index, 0);
  std::ofstream(nics.sysfs_root() + "/class/infiniband/fake0/ports/1/gid_attrs/types/0")
      << "IB/RoCE v1\n";
  EXPECT_EQ(port_of(nics).gid.index, 1);
}

TEST(VerbsPort, InfiniBandHasALidAndNoInterface) {
  FakeVerbs nics(infiniband());
  const Port port = port_of(nics);
  EXPECT_FALSE(port.ethernet);
  EXPECT_EQ(port.lid, 1);
  EXPECT_EQ(port.interface, "");
  EXPECT_EQ(port.gid.type, GidType::kInfiniBand);
}

TEST(VerbsPort, CapsOfRoce) {
  FakeVerbs nics;
  const RailCaps caps = caps_of(nics);
  EXPECT_EQ(caps.name, "fake0") << "one port: its number says nothing";
  EXPECT_EQ(caps.transport, "verbs");
  EXPECT_EQ(caps.oob_address, "192.0.2.1");
  EXPECT_EQ(caps.guid, 0xfa4e000000000001u);
  EXPECT_EQ(caps.port, 1);
  EXPECT_EQ(caps.link_layer, "ethernet");
  EXPECT_EQ(caps.fabric, "");
  EXPECT_EQ(caps.mtu, 4096u);
  EXPECT_EQ(caps.speed_mbps, 10'000u);
  EXPECT_EQ(caps.max_message_bytes, 8u << 20);
  EXPECT_TRUE(caps.confirms_in_hardware && caps.arrives_unpolled);
  EXPECT_FALSE(caps.lines_in_order);
}

TEST(VerbsPort, PortsOfOneNicAreToldApart) {
  FakeVerbsOptions options;
  options.ports = 2;
  FakeVerbs nics(options);
  const RailCaps first = caps_of(nics, 1), second = caps_of(nics, 2);
  EXPECT_EQ(first.name, "fake0:1");
  EXPECT_EQ(second.name, "fake0:2");
  EXPECT_EQ(second.port, 2);
  EXPECT_EQ(first.guid, second.guid);
}

TEST(VerbsPort, TheFabricOfInfiniBandIsItsSubnetPrefix) {
  FakeVerbsOptions options = infiniband();
  options.gids = {"fec0:0:0:7:11:22:33:44"};
  FakeVerbs nics(options);
  const RailCaps caps = caps_of(nics);
  EXPECT_EQ(caps.link_layer, "infiniband");
  EXPECT_EQ(caps.fabric, "fec0:0:0:7::");
}

TEST(VerbsPort, TheMtuIsInBytes) {
  const std::pair<ibv_mtu, uint32_t> kMtus[] = {
      {IBV_MTU_256, 256}, {IBV_MTU_512, 512}, {IBV_MTU_1024, 1024}, {IBV_MTU_2048, 2048}};
  for (const auto& [mtu, bytes] : kMtus) {
    FakeVerbsOptions options;
    options.mtu = mtu;
    FakeVerbs nics(options);
    EXPECT_EQ(caps_of(nics).mtu, bytes);
  }
}

TEST(VerbsPort, WorksAreOrderedOnOneQueuePairOnly) {
  FakeVerbs nics;
  EXPECT_TRUE(caps_of(nics, 1, verbs_settings(1)).ordered);
  EXPECT_FALSE(caps_of(nics, 1, verbs_settings(2)).ordered);
}

TEST(VerbsPort, ThePciFunctionIsWhereTheLinkLeads) {
  FakeVerbs nics;
  EXPECT_EQ(caps_of(nics).pci_path, "") << "as of Soft-RoCE";
  EXPECT_EQ(caps_of(nics).numa_node, -1);
  const std::filesystem::path root = std::filesystem::canonical(nics.sysfs_root());
  std::filesystem::create_directories(root / "devices/0000:5e:00.0");
  std::ofstream(root / "devices/0000:5e:00.0/numa_node") << "1\n";
  std::filesystem::create_directory_symlink(root / "devices/0000:5e:00.0",
                                            root / "class/infiniband/fake0/device");
  EXPECT_EQ(caps_of(nics).pci_path, root / "devices/0000:5e:00.0");
  EXPECT_EQ(caps_of(nics).numa_node, 1);
}

}  // namespace
}  // namespace slime::verbs
