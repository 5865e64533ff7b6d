// What slime-info says of a host that does not exist.
#include "tools/info/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/fake_rail.h"
#include "test/topology/made_up_host.h"

namespace slime::info {
namespace {

using test::DgxLikeHost;
using test::MadeUpHost;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RailCaps rail(const std::string& name, const std::string& path, const char* transport = "verbs") {
  RailCaps caps = test::fake_caps(name);
  caps.transport = transport;
  caps.pci_path = path;
  caps.speed_mbps = 400000;
  return caps;
}

Result<std::unique_ptr<LocalitySource>> no_other_source() {
  return fail(make_error(Status::kUnsupported, 0, "libhwloc.so.15 cannot be loaded"));
}

std::string print(const TopologyReport& report) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* const out = open_memstream(&text, &bytes);
  print_topology(report, out);
  fclose(out);
  std::string result(text, bytes);
  free(text);
  return result;
}

TopologyReport report_of(const DgxLikeHost& host) {
  std::vector<RailCaps> rails;
  for (size_t i = 0; i < host.nics.size(); ++i) {
    rails.push_back(rail("mlx5_" + std::to_string(i), host.nics[i]));
  }
  rails.insert(rails.begin() + 2, rail("mlx5_8", host.storage_nic));
  rails.push_back(rail("veth0", "", "tcp"));
  return describe_topology(Topology::read(host.root()), rails, no_other_source);
}

constexpr const char* kDgxLike = R"(Topology
  socket 0
    NUMA node 0, CPUs 0-55,112-167
      root complex 0000:10
        switch 0000:11:00.0
          GPU 0        0000:13:00.0
          GPU 1        0000:14:00.0
          rail mlx5_0  0000:15:00.0  verbs, 400000 Mb/s
          rail mlx5_1  0000:16:00.0  verbs, 400000 Mb/s
        rail mlx5_8    0000:1b:00.0  verbs, 400000 Mb/s
      root complex 0000:40
        switch 0000:41:00.0
          GPU 2        0000:43:00.0
          GPU 3        0000:44:00.0
          rail mlx5_2  0000:45:00.0  verbs, 400000 Mb/s
          rail mlx5_3  0000:46:00.0  verbs, 400000 Mb/s
  socket 1
    NUMA node 1, CPUs 56-111,168-223
      root complex 0000:90
        switch 0000:91:00.0
          GPU 4        0000:93:00.0
          GPU 5        0000:94:00.0
          rail mlx5_4  0000:95:00.0  verbs, 400000 Mb/s
          rail mlx5_5  0000:96:00.0  verbs, 400000 Mb/s
      root complex 0000:c0
        switch 0000:c1:00.0
          GPU 6        0000:c3:00.0
          GPU 7        0000:c4:00.0
          rail mlx5_6  0000:c5:00.0  verbs, 400000 Mb/s
          rail mlx5_7  0000:c6:00.0  verbs, 400000 Mb/s
  without a PCI function: equally far from every GPU
    rail veth0  tcp, 400000 Mb/s
  NUMA nodes are as said by /sys

  From each GPU to each rail: PIX one switch, PXB several bridges, PHB one root
  complex, NODE one NUMA node, SYS NUMA nodes apart or not known
         mlx5_0  mlx5_1  mlx5_8  mlx5_2  mlx5_3  mlx5_4  mlx5_5  mlx5_6  mlx5_7
  GPU 0  PIX     PIX     PHB     NODE    NODE    SYS     SYS     SYS     SYS
  GPU 1  PIX     PIX     PHB     NODE    NODE    SYS     SYS     SYS     SYS
  GPU 2  NODE    NODE    NODE    PIX     PIX     SYS     SYS     SYS     SYS
  GPU 3  NODE    NODE    NODE    PIX     PIX     SYS     SYS     SYS     SYS
  GPU 4  SYS     SYS     SYS     SYS     SYS     PIX     PIX     NODE    NODE
  GPU 5  SYS     SYS     SYS     SYS     SYS     PIX     PIX     NODE    NODE
  GPU 6  SYS     SYS     SYS     SYS     SYS     NODE    NODE    PIX     PIX
  GPU 7  SYS     SYS     SYS     SYS     SYS     NODE    NODE    PIX     PIX
)";

TEST(TopologyReport, TheDgxLikeHost) {
  const DgxLikeHost host;
  EXPECT_EQ(print(report_of(host)), kDgxLike);
}

TEST(TopologyReport, RailsByWhatTheyShare) {
  const DgxLikeHost host;
  const TopologyReport report = report_of(host);
  const auto rails_of = [&report](Sharing sharing, const std::string& shared) {
    const auto groups = group_rails(report, sharing);
    const auto group = std::ranges::find(groups, shared, &RailGroup::shared);
    return group == groups.end() ? std::vector<std::string>() : group->rails;
  };
  EXPECT_EQ(group_rails(report, Sharing::kSwitch).size(), 4u);
  EXPECT_EQ(group_rails(report, Sharing::kSocket).size(), 2u);
  EXPECT_THAT(rails_of(Sharing::kSwitch, "0000:11:00.0"), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(rails_of(Sharing::kRootComplex, "0000:10"),
              ElementsAre("mlx5_0", "mlx5_1", "mlx5_8"));
  EXPECT_THAT(rails_of(Sharing::kNumaNode, "1"),
              ElementsAre("mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"));
  EXPECT_THAT(rails_of(Sharing::kSocket, "1"), rails_of(Sharing::kNumaNode, "1"));
}

TEST(TopologyReport, AsJson) {
  const DgxLikeHost host;
  const nlohmann::json report = topology_json(report_of(host));
  EXPECT_EQ(report["gpus"].size(), 8u);
  EXPECT_EQ(report["gpus"][4]["socket"], 1);
  EXPECT_EQ(report["rails"].size(), 10u);
  EXPECT_EQ(report["distances"][0].dump(),
            R"(["PIX","PIX","PHB","NODE","NODE","SYS","SYS","SYS","SYS",null])");
  EXPECT_EQ(report["rails"][0]["switches"].dump(), R"(["0000:11:00.0"])");
  EXPECT_EQ(report["rails"][0]["numa_node_source"], "sysfs");
  EXPECT_TRUE(report["rails"][9]["pci"].is_null());
  EXPECT_EQ(report["source"], "/sys");
  EXPECT_EQ(report["groups"]["switch"][0]["rails"].dump(), R"(["mlx5_0","mlx5_1"])");
}

TEST(TopologyReport, SocketsOfOneInterfaceArePrintedAsOneRail) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  const std::string nic = host.add_nic("pci0000:00/0000:00:03.0", -1);
  const TopologyReport report =
      describe_topology(Topology::read(host.root()),
                        {rail("eth0.0", nic, "tcp"), rail("eth0.1", nic, "tcp")}, no_other_source);
  ASSERT_EQ(report.ports.size(), 1u);
  EXPECT_THAT(print(report), HasSubstr("rail eth0  0000:00:03.0  tcp, 2 sockets, 800000 Mb/s\n"));
  EXPECT_THAT(print(report), HasSubstr("no GPU"));
}

class Hwloc final : public LocalitySource {
 public:
  CpuSet cpus_near(const PciAddress& address) const override {
    return CpuSet::parse(address[1] == 0x80 ? "2-3" : "").value();
  }
  const std::string& name() const override { return name_; }

 private:
  const std::string name_ = "hwloc 2.9.0";
};

TEST(TopologyReport, SaysWhoKnowsTheNodes) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  host.add_node(1, "2-3", 1);
  const RailCaps near = rail("near", host.add_nic("pci0000:00/0000:00:03.0", 0));
  const RailCaps lost = rail("lost", host.add_nic("pci0000:40/0000:40:03.0", -1));
  const RailCaps far = rail("far", host.add_nic("pci0000:80/0000:80:03.0", -1));
  const Topology topology = Topology::read(host.root());
  const auto hwloc = []() -> Result<std::unique_ptr<LocalitySource>> {
    return std::make_unique<Hwloc>();
  };
  EXPECT_EQ(describe_topology(topology, {near}, no_other_source).source, "/sys");
  EXPECT_EQ(describe_topology(topology, {near, far}, no_other_source).source,
            "/sys; it does not say it of 0000:80:03.0, and hwloc cannot be asked: libhwloc.so.15 "
            "cannot be loaded");
  const TopologyReport told = describe_topology(topology, {near, far, lost}, hwloc);
  EXPECT_EQ(told.source,
            "/sys; hwloc 2.9.0 for 0000:80:03.0; of 0000:40:03.0 hwloc 2.9.0 does not know it "
            "either");
  EXPECT_EQ(told.ports[1].place.numa_node, 1);
  EXPECT_EQ(told.ports[1].place.source, NodeSource::kHwloc);
  EXPECT_THAT(print(told), HasSubstr("socket not known\n    NUMA node not known\n"));
}

TEST(TopologyReport, WithoutRailsThereIsTheReason) {
  MadeUpHost host;
  host.add_node(0, "0-1", 0);
  TopologyReport report = describe_topology(Topology::read(host.root()), {}, no_other_source);
  EXPECT_FALSE(report.usable());
  report.skipped.emplace_back("eth0 is down");
  EXPECT_THAT(print(report), HasSubstr("not used: eth0 is down"));
  report.error = "no such transport";
  EXPECT_THAT(print(report), HasSubstr("no rails: no such transport"));
  EXPECT_THAT(group_rails(report, Sharing::kSocket), IsEmpty());
}

}  // namespace
}  // namespace slime::info
