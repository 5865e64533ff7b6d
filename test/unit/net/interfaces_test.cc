#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <filesystem>
#include <fstream>

#include "base/interfaces/interfaces.h"
#include "test/support/temporary_directory.h"

namespace slime {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr unsigned kUp = IFF_UP | IFF_RUNNING;

InterfaceRecord record(const char* name, const char* address, unsigned flags = kUp) {
  return {name, flags, SocketAddress::parse(address).value()};
}

// An interface of this kind, as `ip link add type` names it.
InterfaceRecord kind(const char* name, const char* address, const char* kind, unsigned index = 0,
                     unsigned master = 0, unsigned flags = kUp) {
  InterfaceRecord result{name, flags};
  result.link = {index, master, 1500, kind};
  if (*address != '\0') result.address = SocketAddress::parse(address).value();
  return result;
}

std::vector<std::string> names(const InterfaceList& list) {
  std::vector<std::string> result;
  for (const Interface& interface : list.interfaces) result.push_back(interface.name);
  return result;
}

// A /sys of our own.
class Interfaces : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "class/net"); }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // A NIC whose device is `device`, a path below devices/.
  void add_nic(const std::string& name, const std::string& device) {
    fs::create_directories(root_ / "devices" / device);
    fs::create_directories(root_ / "class/net" / name);
    fs::create_symlink(root_ / "devices" / device, root_ / "class/net" / name / "device");
  }
  void set(const std::string& name, const std::string& file, const std::string& text) {
    write(fs::path("class/net") / name / file, text);
  }
  InterfaceList select(const char* pattern, const std::vector<InterfaceRecord>& records) {
    return select_interfaces(pattern, records, root_.string());
  }
  Interface only(const char* name) {
    const InterfaceList list = select("", {record(name, "10.0.0.1")});
    EXPECT_EQ(list.interfaces.size(), 1u);
    return list.interfaces.empty() ? Interface() : list.interfaces[0];
  }

  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  const std::vector<InterfaceRecord> host_ = {record("lo", "127.0.0.1", kUp | IFF_LOOPBACK),
                                              record("eth0", "10.0.0.1"),
                                              record("eth1", "10.0.1.1"),
                                              record("docker0", "172.17.0.1"),
                                              record("br-7f003a2b1c4d", "172.18.0.1"),
                                              record("virbr0", "192.168.122.1"),
                                              record("ib0", "10.1.0.1"),
                                              record("eth2", "10.0.2.1", 0)};
};

TEST_F(Interfaces, DefaultChoiceSkipsWhatCannotReachAPeer) {
  const InterfaceList list = select("", host_);
  EXPECT_THAT(names(list), ElementsAre("eth0", "eth1", "ib0"));
  EXPECT_THAT(list.notes,
              testing::UnorderedElementsAre(
                  "lo is loopback, and other interfaces are up",
                  "docker0 is a virtual bridge or tunnel (name it in NCCL_SLIME_IFNAME to use it)",
                  HasSubstr("br-7f003a2b1c4d is a virtual bridge"),
                  HasSubstr("virbr0 is a virtual bridge"), "eth2 is down (ip link set eth2 up)"));
}

TEST_F(Interfaces, PatternsOfNccl) {
  const struct {
    const char* pattern;
    std::vector<std::string> expected;
  } cases[] = {
      {"eth", {"eth0", "eth1"}},
      {"eth1,ib", {"eth1", "ib0"}},
      {" eth1 , ib0 ", {"eth1", "ib0"}},
      {",,eth0,", {"eth0"}},
      {"=eth", {}},
      {"=eth0,ib0", {"eth0", "ib0"}},
      {"^eth", {"br-7f003a2b1c4d", "docker0", "ib0", "lo", "virbr0"}},  // all others, as in NCCL
      {"^eth,docker", {"br-7f003a2b1c4d", "ib0", "lo", "virbr0"}},
      {"^docker,lo,br-,virbr", {"eth0", "eth1", "ib0"}},
      {"^=eth0", {"br-7f003a2b1c4d", "docker0", "eth1", "ib0", "lo", "virbr0"}},
      {"^=eth,docker0,lo,br-7f003a2b1c4d,virbr0", {"eth0", "eth1", "ib0"}},
      {"docker", {"docker0"}},
      {"lo", {"lo"}},
      {"lo,eth0", {"eth0", "lo"}},
      {"=eth2", {}},
      {"^", {"eth0", "eth1", "ib0"}},
      {"=", {"eth0", "eth1", "ib0"}},
      {"nothing", {}},
      {"^eth,ib,docker,br-,virbr", {"lo"}},
      {"^eth,ib,lo,docker,br-,virbr", {}},
  };
  for (const auto& c : cases) EXPECT_EQ(names(select(c.pattern, host_)), c.expected) << c.pattern;
  EXPECT_THAT(select("=eth2", host_).notes, testing::Contains(HasSubstr("eth2 is down")));
  EXPECT_THAT(select("nothing", host_).notes,
              testing::Contains("eth0 does not match NCCL_SLIME_IFNAME=\"nothing\""));
  EXPECT_THAT(select_interfaces("^eth0", host_, root_, "NCCL_SOCKET_IFNAME").notes,
              testing::Contains("eth0 is excluded by NCCL_SOCKET_IFNAME=\"^eth0\""));
}

TEST_F(Interfaces, OnlyAddressesOfAFamily) {
  const std::vector<InterfaceRecord> records = {
      record("eth0", "10.0.0.1"), record("eth0", "fd00::1"), record("eth1", "10.0.1.1")};
  const auto of = [&](sa_family_t family) {
    return select_interfaces("", records, root_.string(), "NCCL_SLIME_IFNAME", {{}, family});
  };
  EXPECT_EQ(of(AF_UNSPEC).interfaces[0].address.host(), "10.0.0.1");
  EXPECT_THAT(names(of(AF_INET)), ElementsAre("eth0", "eth1"));
  const InterfaceList six = of(AF_INET6);
  ASSERT_THAT(names(six), ElementsAre("eth0"));
  EXPECT_EQ(six.interfaces[0].address.host(), "fd00::1");
  EXPECT_THAT(six.notes, testing::Contains(HasSubstr("eth1 has no usable address of AF_INET6")));
}

TEST_F(Interfaces, LongPatternIsHarmless) {
  const std::string pattern = "eth0," + std::string(100000, ',') + std::string(100000, 'x');
  EXPECT_THAT(names(select(pattern.c_str(), host_)), ElementsAre("eth0"));
}

TEST_F(Interfaces, LoopbackWhenItIsAllThereIs) {
  const InterfaceList list =
      select("", {record("lo", "127.0.0.1", kUp | IFF_LOOPBACK), record("docker0", "172.17.0.1")});
  ASSERT_THAT(names(list), ElementsAre("lo"));
  EXPECT_TRUE(list.interfaces[0].loopback);
}

TEST_F(Interfaces, KindsThatStandForANicAreUsedBesideOne) {
  for (const char* what : {"", "veth", "bond", "team", "vlan", "macvlan", "ipvlan", "netkit"}) {
    EXPECT_THAT(names(select("", {record("eth0", "10.0.0.1"), kind("eth1", "10.1.0.1", what)})),
                ElementsAre("eth0", "eth1"))
        << what;
  }
}

TEST_F(Interfaces, TunnelsAndBridgesComeLast) {
  const std::vector<InterfaceRecord> lo = {record("lo", "127.0.0.1", kUp | IFF_LOOPBACK)};
  const struct {
    const char *name, *kind, *why;
  } cases[] = {{"wg0", "wireguard", "is a tunnel (wireguard)"},
               {"tailscale0", "tun", "is a tunnel (tun)"},
               {"vxlan.calico", "vxlan", "is a tunnel (vxlan)"},
               {"genev_sys", "geneve", "is a tunnel (geneve)"},
               {"gre1", "gre", "is a tunnel (gre)"},
               {"incusbr0", "bridge", "is a bridge of which no NIC with a carrier is a part"},
               {"nerdctl0", "bridge", "is a bridge of which no NIC"},
               {"weave", "bridge", "is a bridge of which no NIC"},
               {"dummy0", "dummy", "is a virtual device (dummy)"},
               {"br-ex", "openvswitch", "is a port of Open vSwitch"}};
  for (const auto& c : cases) {
    std::vector<InterfaceRecord> records = lo;
    records.push_back(kind(c.name, "10.8.0.1", c.kind, 5));
    EXPECT_THAT(names(select("", records)), ElementsAre(c.name)) << "nothing else is left";
    records.push_back(record("eth0", "10.0.0.1"));
    const InterfaceList list = select("", records);
    EXPECT_THAT(names(list), ElementsAre("eth0"));
    EXPECT_THAT(list.notes, testing::Contains(testing::AllOf(
                                testing::StartsWith(c.name + std::string(" ") + c.why),
                                HasSubstr("name it in NCCL_SLIME_IFNAME to use it"))));
    EXPECT_THAT(names(select((std::string(c.name) + ",eth0").c_str(), records)),
                testing::UnorderedElementsAre("eth0", c.name));
  }
}

TEST_F(Interfaces, ABridgeOverANicIsTheHostsNetwork) {
  const auto chosen = [&](const char* bridge, const char* member, unsigned flags = kUp) {
    return names(select("", {kind("member0", "", member, 3, 7, flags),
                             kind(bridge, "10.0.0.1", "bridge", 7), record("eth9", "10.9.0.1")}));
  };
  EXPECT_THAT(chosen("br0", ""), ElementsAre("br0", "eth9"));
  EXPECT_THAT(chosen("virbr0", ""), ElementsAre("eth9", "virbr0")) << "whatever its name is";
  EXPECT_THAT(chosen("br0", "bond"), ElementsAre("br0", "eth9"));
  EXPECT_THAT(chosen("br0", "vlan"), ElementsAre("br0", "eth9"));
  EXPECT_THAT(chosen("br0", "", IFF_UP), ElementsAre("eth9")) << "its NIC has no carrier";
  EXPECT_THAT(chosen("br0", "veth"), ElementsAre("eth9"));
  EXPECT_THAT(chosen("br0", "tun"), ElementsAre("eth9"));
}

TEST_F(Interfaces, LinkLocalAddressesAreUsedWhereNothingElseIs) {
  const std::vector<InterfaceRecord> records = {record("usb0", "169.254.3.1"),
                                                record("lo", "127.0.0.1", kUp | IFF_LOOPBACK)};
  EXPECT_THAT(names(select("", records)), ElementsAre("usb0"));
  std::vector<InterfaceRecord> more = records;
  more.push_back(kind("wg0", "10.8.0.1", "wireguard"));
  const InterfaceList list = select("", more);
  EXPECT_THAT(names(list), ElementsAre("wg0"));
  EXPECT_THAT(list.notes,
              testing::Contains("usb0 has a link-local address only (169.254.3.1), and other "
                                "interfaces are up (name it in NCCL_SLIME_IFNAME to use it)"));
  EXPECT_THAT(names(select("usb", more)), ElementsAre("usb0"));
}

TEST_F(Interfaces, NamesOfManagersAreNeverTheDefault) {
  for (const char* name : {"antrea-gw0", "ovn-k8s-mp0", "vmnet8", "vboxnet0", "br-0123456789ab"}) {
    EXPECT_THAT(names(select("", {record(name, "10.0.0.1")})), IsEmpty()) << name;
    EXPECT_THAT(names(select(name, {record(name, "10.0.0.1")})), ElementsAre(name));
  }
}

TEST_F(Interfaces, RangesChooseInterfacesAndTheirAddresses) {
  const std::vector<InterfaceRecord> records = {record("lo", "127.0.0.1", kUp | IFF_LOOPBACK),
                                                record("eth0", "10.0.0.1"),
                                                record("eth0", "10.1.0.1"),
                                                record("eth0", "fd00::1"),
                                                record("eth1", "10.2.0.1"),
                                                record("docker0", "172.17.0.1")};
  const auto chosen = [&](const char* pattern, const char* ranges) {
    const auto list = select_interfaces(pattern, records, root_, "NCCL_SLIME_IFNAME",
                                        {parse_ranges(ranges).value()});
    std::string text;
    for (const Interface& one : list.interfaces) text += one.name + "=" + one.address.host() + " ";
    return text;
  };
  EXPECT_EQ(chosen("", "10.1.0.0/16"), "eth0=10.1.0.1 ");
  EXPECT_EQ(chosen("", "10.0.0.0/8"), "eth0=10.0.0.1 eth1=10.2.0.1 ");
  EXPECT_EQ(chosen("", "10.1.0.0/16,10.0.0.0/8"), "eth0=10.1.0.1 eth1=10.2.0.1 ");
  EXPECT_EQ(chosen("", "fd00::/8, 10.2.0.0/16"), "eth0=fd00::1 eth1=10.2.0.1 ");
  EXPECT_EQ(chosen("", "172.16.0.0/12"), "docker0=172.17.0.1 ") << "as if it were named";
  EXPECT_EQ(chosen("", "127.0.0.0/8"), "lo=127.0.0.1 ");
  EXPECT_EQ(chosen("eth1", "10.0.0.0/8"), "eth1=10.2.0.1 ") << "both hold";
  EXPECT_EQ(chosen("^eth0", "10.0.0.0/8"), "eth1=10.2.0.1 ");
  EXPECT_EQ(chosen("eth1", "10.1.0.0/16"), "");
  EXPECT_THAT(select_interfaces("", records, root_, "NCCL_SLIME_IFNAME",
                                {parse_ranges("10.1.0.0/16").value()})
                  .notes,
              testing::Contains("eth1 has no address in NCCL_SLIME_SOCKET_SUBNET"));
  const auto bad = list_interfaces("", "NCCL_SLIME_IFNAME", "10.1.0.0");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().what, HasSubstr("'10.1.0.0' is no list of ranges"));
}

TEST_F(Interfaces, NothingIsTakenFromTheFilesOfAnotherNamespace) {
  add_nic("eth0", "pci0000:00/0000:00:05.0/virtio3");
  set("eth0", "address", "02:00:5e:10:00:ff\n");
  set("eth0", "speed", "100000\n");
  set("eth0", "mtu", "9000\n");
  set("eth0", "ifindex", "2\n");
  const auto facts_with = [&](unsigned index, const char* mac = "02:00:5e:10:00:ff") {
    InterfaceRecord eth0 = kind("eth0", "10.0.0.1", "veth", index);
    eth0.link.mac = mac;
    const InterfaceList list = select("", {eth0});
    return list.interfaces.empty() ? Interface() : list.interfaces[0];
  };
  const Interface own = facts_with(2);
  EXPECT_TRUE(own.speed_known);
  EXPECT_NE(own.pci_path, "");
  EXPECT_EQ(own.guid, 0x02005e1000ffu);
  EXPECT_EQ(own.mtu, 9000u);
  // A container's first interface often has the number that the host's first one has.
  for (const Interface& other : {facts_with(17), facts_with(2, "02:00:5e:10:00:01")}) {
    EXPECT_FALSE(other.speed_known);
    EXPECT_EQ(other.pci_path, "");
    EXPECT_EQ(other.driver, "");
    EXPECT_NE(other.guid, own.guid);
    EXPECT_EQ(other.mtu, 1500u) << "the kernel says it too";
  }
}

TEST_F(Interfaces, NoInterfaceIsNoError) {
  EXPECT_THAT(select("", {}).interfaces, IsEmpty());
  EXPECT_THAT(select("eth0", {}).interfaces, IsEmpty());
}

TEST_F(Interfaces, ChoosesTheAddressThatAPeerCanUse) {
  const auto chosen = [&](const std::vector<const char*>& addresses) -> std::string {
    std::vector<InterfaceRecord> records = {{"eth0", kUp, std::nullopt, {}}};
    for (const char* text : addresses) records.push_back(record("eth0", text));
    const InterfaceList list = select("", records);
    return list.interfaces.empty() ? "" : list.interfaces[0].address.to_string();
  };
  EXPECT_EQ(chosen({"10.0.0.1", "10.0.0.2"}), "10.0.0.1:0");
  EXPECT_EQ(chosen({"fd00::1", "10.0.0.1"}), "10.0.0.1:0");
  EXPECT_EQ(chosen({"169.254.0.9", "10.0.0.1"}), "10.0.0.1:0");
  EXPECT_EQ(chosen({"fe80::1%1", "fd00::1", "fd00::2"}), "[fd00::1]:0");
  EXPECT_EQ(chosen({"169.254.0.9", "fd00::1"}), "[fd00::1]:0");
  EXPECT_EQ(chosen({"fe80::1%1", "169.254.0.9"}), "169.254.0.9:0");
  EXPECT_EQ(chosen({"fe80::1%1"}), "");
  EXPECT_EQ(chosen({"0.0.0.0", "127.0.0.1"}), "");
  EXPECT_EQ(chosen({}), "");
}

TEST_F(Interfaces, AddressLabelsBelongToTheirInterface) {
  EXPECT_THAT(names(select("eth0", {record("eth0:1", "10.0.0.2"), record("eth0", "10.0.0.1")})),
              ElementsAre("eth0"));
}

TEST_F(Interfaces, PciFunctionSpeedAndNumaNode) {
  add_nic("eth0", "pci0000:00/0000:00:01.0/0000:17:00.1");
  set("eth0", "address", "02:00:5e:10:00:ff\n");
  set("eth0", "speed", "100000\n");
  set("eth0", "mtu", "9000\n");
  write("devices/pci0000:00/0000:00:01.0/0000:17:00.1/numa_node", "1\n");
  const Interface nic = only("eth0");
  EXPECT_EQ(nic.pci_path, (root_ / "devices/pci0000:00/0000:00:01.0/0000:17:00.1").string());
  EXPECT_EQ(nic.guid, 0x02005e1000ffu);
  EXPECT_EQ(nic.speed_mbps, 100000u);
  EXPECT_EQ(nic.mtu, 9000u);
  EXPECT_EQ(nic.numa_node, 1);
  EXPECT_FALSE(nic.loopback);
}

TEST_F(Interfaces, VirtioClimbsToItsPciFunction) {
  add_nic("eth0", "pci0000:00/0000:00:05.0/virtio3");
  EXPECT_EQ(only("eth0").pci_path, (root_ / "devices/pci0000:00/0000:00:05.0").string());
}

TEST_F(Interfaces, DriverOfTheNicAndNotOfWhatIsBelowIt) {
  add_nic("eth0", "pci0000:00/0000:00:05.0/virtio3");
  const auto drive = [&](const std::string& device, const std::string& driver) {
    fs::create_directories(root_ / "bus/drivers" / driver);
    fs::create_symlink(root_ / "bus/drivers" / driver, root_ / "devices" / device / "driver");
  };
  EXPECT_EQ(only("eth0").driver, "") << "no driver is bound to it";
  drive("pci0000:00/0000:00:05.0", "virtio-pci");
  drive("pci0000:00/0000:00:05.0/virtio3", "virtio_net");
  EXPECT_EQ(only("eth0").driver, "virtio_net");
  add_nic("ens5", "pci0000:00/0000:00:06.0");
  drive("pci0000:00/0000:00:06.0", "ena");
  EXPECT_EQ(only("ens5").driver, "ena");
  EXPECT_EQ(only("tun0").driver, "") << "no device at all";
}

TEST_F(Interfaces, BondsAreKnownByTheirDirectory) {
  set("bond0", "bonding/slaves", "eth0 eth1\n");
  set("bond0", "speed", "50000\n");
  const Interface bond = only("bond0");
  EXPECT_EQ(bond.driver, "bonding");
  EXPECT_EQ(bond.speed_mbps, 50000u);
}

TEST_F(Interfaces, DevicesWithoutPciAreVirtual) {
  add_nic("eth0", "LNXSYSTM:00/VMBUS:01/f8615163-df3e-46c5-913f-f2d2f965ed0e");
  const Interface nic = only("eth0");
  EXPECT_EQ(nic.pci_path, "");
  EXPECT_EQ(nic.numa_node, -1);
}

TEST_F(Interfaces, GuidOfIpoibIsThePortsGuid) {
  set("ib0", "address", "00:00:10:29:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:0a:1b:2c\n");
  EXPECT_EQ(only("ib0").guid, 0xb8599f03000a1b2cu);
}

TEST_F(Interfaces, GuidWithoutAMacComesFromTheName) {
  const uint64_t absent = only("tun0").guid;
  EXPECT_NE(absent, 0u);
  EXPECT_EQ(absent, only("tun0").guid);
  EXPECT_NE(absent, only("tun1").guid);
  for (const char* bad : {"00:00:00:00:00:00", "02:00:5e", "02:00:5e:10:00:f", "zz:00:5e:10:00:ff",
                          "02-00-5e-10-00-ff", "02:00:5e:10:00:ff:", "", ":::::"}) {
    set("tun0", "address", std::string(bad) + "\n");
    EXPECT_EQ(only("tun0").guid, absent) << bad;
  }
}

TEST_F(Interfaces, ImplausibleSpeedsCountAsUnknown) {
  for (const char* bad : {"-1", "0", "", "fast", "100x", "4294967296", "99999999999999999999"}) {
    set("eth0", "speed", std::string(bad) + "\n");
    EXPECT_EQ(only("eth0").speed_mbps, 10000u) << bad;
    EXPECT_FALSE(only("eth0").speed_known) << bad;
  }
  set("eth0", "speed", "25000");
  EXPECT_EQ(only("eth0").speed_mbps, 25000u);
  EXPECT_TRUE(only("eth0").speed_known);
}

TEST_F(Interfaces, NamesCannotLeaveTheirDirectory) {
  write("class/net/speed", "40000\n");
  write("class/speed", "40000\n");
  for (const char* name : {"..", ".", "../net", "eth0/../.."}) {
    EXPECT_EQ(only(name).speed_mbps, 10000u) << name;
  }
}

TEST_F(Interfaces, SortedByPciAddressThenName) {
  add_nic("a", "pci0000:80/0000:80:00.0");
  add_nic("b", "pci0000:00/0000:09:00.0");
  add_nic("c2", "pci0000:00/0000:0a:00.0");
  add_nic("c1", "pci0000:00/0000:0a:00.0");
  add_nic("d", "pci10000:00/10000:01:00.0");
  std::vector<InterfaceRecord> records;
  for (const char* name : {"virtual", "d", "a", "c2", "b", "c1", "also"}) {
    records.push_back(record(name, "10.0.0.1"));
  }
  EXPECT_THAT(names(select("", records)),
              ElementsAre("b", "c1", "c2", "a", "d", "also", "virtual"));
}

TEST(HostInterfaces, LoopbackOfThisMachine) {
  const auto list = list_interfaces("=lo");
  ASSERT_TRUE(list) << list.error().what;
  if (list->interfaces.empty()) GTEST_SKIP() << "no loopback: " << list->notes.front();
  const Interface& lo = list->interfaces[0];
  EXPECT_EQ(lo.name, "lo");
  EXPECT_EQ(lo.address.to_string(), "127.0.0.1:0");
  EXPECT_TRUE(lo.loopback);
  EXPECT_EQ(lo.pci_path, "");
  EXPECT_TRUE(listen_on(lo.address));
}

}  // namespace
}  // namespace slime
