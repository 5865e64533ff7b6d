// Which libfabric rails a host has, what is said of them, and why it has no others.
#include <fstream>

#include "test/fabric/support.h"

namespace slime::fabric {
namespace {

TEST(FabricRail, ANicIsDescribed) {
  const FakeFabric nics({.device_memory = true});
  const Opened opened(nics);
  EXPECT_THAT(opened.notes, IsEmpty());
  ASSERT_THAT(opened.names(), ElementsAre("efa0", "efa1"));
  const RailCaps& caps = opened.rails[0]->caps();
  EXPECT_EQ(caps.transport, "libfabric");
  EXPECT_EQ(caps.fabric, "efa");
  EXPECT_EQ(caps.reason, "provider efa of libfabric 2.6");
  EXPECT_EQ(caps.oob_address, "127.0.0.1");
  EXPECT_THAT(caps.pci_path, testing::EndsWith("/devices/pci0000:00/0000:00:1e.0"));
  EXPECT_EQ(caps.numa_node, 1);
  EXPECT_EQ(caps.speed_mbps, 100'000u);
  EXPECT_EQ(caps.mtu, 8'928u);
  EXPECT_EQ(caps.send_queue_depth, 256u) << "of the first form in which it is listed";
  EXPECT_EQ(caps.max_message_bytes, uint64_t{1} << 30);
  EXPECT_FALSE(caps.ordered);
  EXPECT_TRUE(caps.arrives_unpolled);
  EXPECT_NE(caps.guid, opened.rails[1]->caps().guid);
}

TEST(FabricRail, ANicOfWhichLittleIsKnown) {
  const FakeFabric nics({.nics = {{.name = "efa7", .on_pci = false, .has_link = false}}});
  const Opened opened(nics);
  ASSERT_THAT(opened.names(), ElementsAre("efa7"));
  const RailCaps& caps = opened.rails[0]->caps();
  EXPECT_EQ(caps.pci_path, "");
  EXPECT_EQ(caps.numa_node, -1);
  EXPECT_EQ(caps.mtu, 0u);
  EXPECT_EQ(caps.speed_mbps, 10'000u);
}

TEST(FabricRail, TheHcaFilterChoosesNics) {
  const FakeFabric nics;
  Settings settings = fabric_settings();
  settings.hca = "^efa1";
  const Opened opened(nics, settings);
  EXPECT_THAT(opened.names(), ElementsAre("efa0"));
  EXPECT_THAT(opened.notes, ElementsAre("efa1: excluded by " + variable_of("NCCL_SLIME_HCA")));
}

TEST(FabricRail, InterfacesChooseTheDomainsOfSoftware) {
  const FakeFabric nics(
      {.provider = "tcp;ofi_rxm", .nics = {{.name = "lo", .on_pci = false, .has_link = false}}});
  Settings settings = fabric_settings("tcp;ofi_rxm");
  EXPECT_THAT(Opened(nics, settings).names(), ElementsAre("tcp;ofi_rxm/lo"));
  settings.ifname = "^lo";
  const Opened opened(nics, settings);
  EXPECT_THAT(opened.rails, IsEmpty());
  EXPECT_THAT(opened.notes, ElementsAre("lo: excluded by " + variable_of("NCCL_SLIME_IFNAME")));
}

TEST(FabricRail, AProviderWithoutANicIsNoted) {
  const FakeFabric nics;
  const Opened opened(nics, fabric_settings("nosuch"));
  EXPECT_THAT(opened.rails, IsEmpty());
  EXPECT_THAT(opened.notes,
              ElementsAre(HasSubstr("libfabric: provider nosuch has no NIC here: fake error 61")));
}

TEST(FabricRail, AProviderThatIsFoundUnderAnotherNameOnlyIsNoted) {
  const FakeFabric nics({.provider = "tcp;ofi_rxm", .nics = {{.name = "lo", .on_pci = false}}});
  const Opened opened(nics, fabric_settings("tcp"));
  EXPECT_THAT(opened.rails, IsEmpty());
  EXPECT_THAT(opened.notes, ElementsAre("libfabric: no provider tcp, but tcp;ofi_rxm; name it so"));
}

TEST(FabricRail, WithoutANameEfaIsAsked) {
  const FakeFabric nics;
  const Opened opened(nics, fabric_settings(""));
  EXPECT_THAT(opened.names(), ElementsAre("efa0", "efa1"));
  EXPECT_THAT(opened.notes, IsEmpty());
}

TEST(FabricRail, MoreConnectionsThanEndpointsAreRefusedInWords) {
  TestNics world({.ep_cnt = 2});
  std::vector<std::unique_ptr<Channel>> channels;
  for (int i = 0; i < 2; ++i) {
    auto channel = world.left->open_channel({.active = true});
    ASSERT_TRUE(channel) << channel.error().what;
    channels.push_back(std::move(*channel));
  }
  const auto refused = world.left->open_channel({.active = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().what,
      "rail efa0: fi_endpoint failed; each connection takes one, and the domain efa0-rdm has 2 "
      "(ep_cnt, see fi_info -v): fake error 12 (12)");
  channels.pop_back();
  EXPECT_TRUE(world.left->open_channel({.active = true})) << "a closed one makes room";
}

TEST(FabricRail, MemoryThatCannotBeRegisteredIsNamed) {
  TestNics world;
  world.nics.fail_registrations(-FI_ENOMEM);
  std::array<std::byte, 16> bytes;
  const auto refused = world.left->register_memory({bytes.data(), bytes.size()});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("rail efa0: 16 bytes at 0x"));
  EXPECT_THAT(refused.error().what, HasSubstr("`ulimit -l`"));
}

// A made-up /sys.
class FabricIsWanted : public testing::Test {
 protected:
  FabricIsWanted() {
    std::string name = std::filesystem::temp_directory_path() / "slime-fabric-sys-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~FabricIsWanted() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void add_rdma_device(const std::string& name, const std::string& driver) {
    const auto device = root_ / "class/infiniband" / name / "device";
    std::filesystem::create_directories(root_ / "bus/pci/drivers" / driver);
    std::filesystem::create_directories(device);
    std::filesystem::create_directory_symlink(root_ / "bus/pci/drivers" / driver,
                                              device / "driver");
  }
  bool is_wanted(const std::string& provider = "") const {
    return fabric::is_wanted(fabric_settings(provider), root_.string());
  }

  std::filesystem::path root_;
};

TEST_F(FabricIsWanted, NotWithoutANicThatOnlyLibfabricDrives) {
  EXPECT_FALSE(is_wanted());
  add_rdma_device("mlx5_0", "mlx5_core");
  EXPECT_FALSE(is_wanted());
}

TEST_F(FabricIsWanted, WithAnEfaNic) {
  add_rdma_device("mlx5_0", "mlx5_core");
  add_rdma_device("rdmap0s30", "efa");
  EXPECT_TRUE(is_wanted());
}

TEST_F(FabricIsWanted, WhenAProviderIsNamed) { EXPECT_TRUE(is_wanted("shm")); }

}  // namespace
}  // namespace slime::fabric
