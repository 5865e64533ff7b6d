// Places and distances on hosts that do not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/machine/topology.h"
#include "test/topology/made_up_host.h"

namespace slime {
namespace {

using test::DgxLikeHost;
using test::MadeUpHost;
using testing::ElementsAre;
using testing::IsEmpty;

std::string distance(const Topology& host, const std::string& a, const std::string& b) {
  return name_of(distance_between(host.locate(a), host.locate(b)));
}

TEST(Topology, FindsGpusByPciAddressAndNoManagementController) {
  const DgxLikeHost host;
  const Topology topology = Topology::read(host.root());
  std::vector<std::string> paths;
  for (const PciPlace& gpu : topology.gpus()) paths.push_back(gpu.path);
  EXPECT_EQ(paths, host.gpus);
}

TEST(Topology, NodesWithTheirCpusAndSockets) {
  const DgxLikeHost host;
  const Topology topology = Topology::read(host.root());
  ASSERT_EQ(topology.nodes().size(), 2u);
  const NumaNode& second = topology.nodes()[1];
  EXPECT_EQ(second.number, 1);
  EXPECT_EQ(second.socket, 1);
  EXPECT_EQ(second.cpus.to_string(), "56-111,168-223");
}

TEST(Topology, APlaceNamesEveryStepToIt) {
  const DgxLikeHost host;
  const PciPlace place = Topology::read(host.root()).locate(host.nics[4]);
  EXPECT_EQ(place.address(), "0000:95:00.0");
  EXPECT_EQ(place.host_bridge, host.root().string() + "/devices/pci0000:90");
  EXPECT_THAT(place.bridges, ElementsAre("0000:90:01.0", "0000:91:00.0", "0000:92:02.0"));
  EXPECT_THAT(place.switches, ElementsAre("0000:91:00.0"));
  EXPECT_EQ(place.numa_node, 1);
  EXPECT_EQ(place.socket, 1);
  EXPECT_EQ(place.source, NodeSource::kSysfs);
}

TEST(Topology, DistancesOnTheDgxLikeHost) {
  const DgxLikeHost host;
  const Topology topology = Topology::read(host.root());
  const std::string& gpu = host.gpus[0];
  EXPECT_EQ(distance(topology, gpu, gpu), "X");
  EXPECT_EQ(distance(topology, gpu, host.nics[0]), "PIX");
  EXPECT_EQ(distance(topology, gpu, host.nics[1]), "PIX");
  EXPECT_EQ(distance(topology, gpu, host.storage_nic), "PHB");
  EXPECT_EQ(distance(topology, gpu, host.nics[2]), "NODE");
  EXPECT_EQ(distance(topology, gpu, host.nics[4]), "SYS");
  EXPECT_EQ(distance(topology, host.nics[7], gpu), "SYS");
}

TEST(Topology, SeveralSwitchesOfOneRootPort) {
  MadeUpHost host;
  host.add_node(0, "0-7", 0);
  const std::string outer = "pci0000:00/0000:00:01.0/0000:01:00.0/";
  const std::string inner = outer + "0000:02:00.0/0000:03:00.0/";
  const std::string gpu = host.add_gpu(inner + "0000:04:00.0/0000:05:00.0", 0);
  const std::string near = host.add_nic(inner + "0000:04:01.0/0000:06:00.0", 0);
  const std::string far = host.add_nic(outer + "0000:02:01.0/0000:07:00.0", 0);
  const std::string twin = host.add_nic(outer + "0000:02:01.0/0000:07:00.1", 0);
  const Topology topology = Topology::read(host.root());
  EXPECT_THAT(topology.locate(gpu).switches, ElementsAre("0000:01:00.0", "0000:03:00.0"));
  EXPECT_EQ(distance(topology, gpu, near), "PIX");
  EXPECT_EQ(distance(topology, gpu, far), "PXB");
  EXPECT_EQ(distance(topology, far, twin), "PIX") << "functions of one card";
}

TEST(Topology, FunctionsOfACardWithoutASwitchAndDevicesOfARootBus) {
  MadeUpHost host;
  host.add_node(0, "0-7", 0);
  const std::string port = "pci0000:00/0000:00:01.0/";
  const std::string first = host.add_nic(port + "0000:01:00.0", 0);
  const std::string second = host.add_nic(port + "0000:01:00.1", 0);
  const std::string bare = host.add_nic("pci0000:00/0000:00:03.0", 0);
  const std::string other = host.add_nic("pci0000:00/0000:00:05.0", 0);
  const Topology topology = Topology::read(host.root());
  EXPECT_EQ(distance(topology, first, second), "PIX");
  EXPECT_EQ(distance(topology, first, bare), "PHB");
  EXPECT_EQ(distance(topology, bare, other), "PHB");
}

// On Hyper-V and ARM the host bridge is not directly below devices/; behind VMD it is below
// another.
TEST(Topology, HostBridgesInUnusualPlaces) {
  MadeUpHost host;
  host.add_node(0, "0-7", 0);
  const std::string vmbus = host.add_nic("LNXSYSTM:00/VMBUS:01/4750-01/pci0001:00/0001:00:02.0", 0);
  const std::string vmd =
      host.add_nic("pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0", 0);
  const std::string outside = host.add_nic("pci0000:00/0000:00:01.0/0000:01:00.0", 0);
  const Topology topology = Topology::read(host.root());
  EXPECT_EQ(topology.locate(vmbus).host_bridge,
            host.root().string() + "/devices/LNXSYSTM:00/VMBUS:01/4750-01/pci0001:00");
  EXPECT_THAT(topology.locate(vmbus).bridges, IsEmpty());
  EXPECT_THAT(topology.locate(vmd).bridges, ElementsAre("10000:e0:01.0"));
  EXPECT_EQ(distance(topology, vmd, outside), "NODE");
}

TEST(Topology, OneNodeIsWhereEverythingIs) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  host.add_node(1, "", 0);  // memory of a GPU, say
  const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", -1);
  const std::string far = host.add_nic("pci0000:80/0000:80:03.0", -1);
  const Topology topology = Topology::read(host.root());
  EXPECT_EQ(topology.locate(nic).numa_node, 0);
  EXPECT_EQ(topology.locate(nic).source, NodeSource::kOnlyNode);
  EXPECT_EQ(distance(topology, nic, far), "NODE");
}

TEST(Topology, UnknownNodesAreFar) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  host.add_node(1, "2-3", 1);
  const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", -1);
  const std::string other = host.add_nic("pci0000:80/0000:80:03.0", -1);
  const Topology topology = Topology::read(host.root());
  EXPECT_EQ(topology.locate(nic).numa_node, -1);
  EXPECT_EQ(topology.locate(nic).source, NodeSource::kNobody);
  EXPECT_EQ(distance(topology, nic, other), "SYS");
}

TEST(Topology, AKernelWithoutNumaHasOneNode) {
  MadeUpHost host;
  host.write("devices/system/cpu/online", "0-3");
  host.write("devices/system/cpu/cpu0/topology/physical_package_id", "0");
  const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", -1);
  const Topology topology = Topology::read(host.root());
  ASSERT_EQ(topology.nodes().size(), 1u);
  EXPECT_EQ(topology.nodes()[0].cpus.to_string(), "0-3");
  EXPECT_EQ(topology.locate(nic).numa_node, 0);
}

TEST(Topology, MalformedFilesAreFactsThatAreNotKnown) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  host.add_node(1, "2-3", 1);
  for (const char* bad : {"", "x", "-1", "2", "99999999999999999999", "0x1", "1 "}) {
    const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", 0);
    host.write("devices/pci0000:00/0000:00:03.0/numa_node", bad);
    EXPECT_EQ(Topology::read(host.root()).locate(nic).numa_node, -1) << bad;
    std::filesystem::remove_all(host.root().string() + "/bus");
  }
  host.add_gpu("pci0000:00/0000:00:04.0", 0);
  for (const char* bad : {"", "030200", "0x", "0xyz", "0x020000", "0x10302000000000"}) {
    host.write("devices/pci0000:00/0000:00:04.0/class", bad);
    EXPECT_THAT(Topology::read(host.root()).gpus(), IsEmpty()) << bad;
  }
  host.write("devices/system/node/online", "0-99999999");
  host.write("devices/system/cpu/online", "nonsense");
  const Topology nothing = Topology::read(host.root());
  ASSERT_EQ(nothing.nodes().size(), 1u);
  EXPECT_TRUE(nothing.nodes()[0].cpus.empty());
}

TEST(Topology, AHostWithoutSysfs) {
  const Topology topology = Topology::read("/nonexistent");
  EXPECT_EQ(topology.nodes().size(), 1u);
  EXPECT_THAT(topology.gpus(), IsEmpty());
  EXPECT_EQ(topology.locate("").numa_node, -1);
}

TEST(Topology, ListsOfManyCpusAreReadWhole) {
  MadeUpHost host;
  std::string every_other = "0";
  for (int cpu = 2; cpu < 512; cpu += 2) every_other += "," + std::to_string(cpu);
  host.add_node(0, every_other, 0);
  EXPECT_EQ(Topology::read(host.root()).nodes()[0].cpus.to_string(), every_other);
}

// What hwloc would say.
class Said final : public LocalitySource {
 public:
  explicit Said(const char* list) : near_(CpuSet::parse(list).value()) {}
  CpuSet cpus_near(const PciAddress&) const override { return near_; }
  const std::string& name() const override { return name_; }

 private:
  const CpuSet near_;
  const std::string name_ = "a test";
};

TEST(Topology, AnotherSourceSettlesWhatSysfsDoesNotSay) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  host.add_node(1, "2-3", 1);
  const std::string known = host.add_nic("pci0000:00/0000:00:03.0", 0);
  const std::string unknown = host.add_nic("pci0000:80/0000:80:03.0", -1);
  const Topology topology = Topology::read(host.root());
  PciPlace place = topology.locate(unknown);
  EXPECT_FALSE(topology.ask(Said(""), &place));
  EXPECT_FALSE(topology.ask(Said("0-3"), &place)) << "of several nodes";
  EXPECT_EQ(place.numa_node, -1);
  EXPECT_TRUE(topology.ask(Said("2-3"), &place));
  EXPECT_EQ(place.numa_node, 1);
  EXPECT_EQ(place.socket, 1);
  EXPECT_EQ(place.source, NodeSource::kHwloc);
  place = topology.locate(known);
  EXPECT_FALSE(topology.ask(Said("2-3"), &place)) << "/sys has said it";
  EXPECT_EQ(place.numa_node, 0);
}

}  // namespace
}  // namespace slime
