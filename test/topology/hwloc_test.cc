// What the installed hwloc says of a host that is described in a file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/machine/topology.h"
#include "test/support/temporary_directory.h"

namespace slime {
namespace {

// Two packages of one node and two CPUs each, and a NIC at the second one.
constexpr const char* kDescription = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0xf" complete_cpuset="0xf" allowed_cpuset="0xf"
   nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
    complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
     complete_nodeset="0x1" gp_index="3" local_memory="4096"/>
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
     complete_nodeset="0x1" gp_index="4"/>
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1"
     complete_nodeset="0x1" gp_index="5"/>
  </object>
  <object type="Package" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2"
    complete_nodeset="0x2" gp_index="6">
   <object type="NUMANode" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2"
     complete_nodeset="0x2" gp_index="7" local_memory="4096"/>
   <object type="PU" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2"
     complete_nodeset="0x2" gp_index="8"/>
   <object type="PU" os_index="3" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2"
     complete_nodeset="0x2" gp_index="9"/>
   <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[80-80]">
    <object type="PCIDev" gp_index="11" pci_busid="0000:80:03.0"
      pci_type="0200 [15b3:1021] [15b3:0023] 00" pci_link_speed="0.000000"/>
   </object>
  </object>
 </object>
</topology>
)";

class Hwloc : public testing::Test {
 protected:
  void SetUp() override {
    const auto hwloc = open_hwloc();
    if (!hwloc) GTEST_SKIP() << hwloc.error().what;
  }
  void TearDown() override { unsetenv("HWLOC_XMLFILE"); }
  void describe(const char* text) {
    const auto file = directory_.path() / "host.xml";
    std::ofstream(file) << text;
    setenv("HWLOC_XMLFILE", file.c_str(), 1);
  }

  const test::TemporaryDirectory directory_;
};

TEST_F(Hwloc, KnowsTheCpusNearAFunction) {
  describe(kDescription);
  const auto hwloc = open_hwloc();
  ASSERT_TRUE(hwloc) << hwloc.error().what;
  EXPECT_EQ((*hwloc)->cpus_near({0, 0x80, 3, 0}).to_string(), "2-3");
  EXPECT_TRUE((*hwloc)->cpus_near({0, 0x80, 4, 0}).empty());
  EXPECT_TRUE((*hwloc)->cpus_near({0x10000, 0x80, 3, 0}).empty());
  EXPECT_EQ((*hwloc)->name().substr(0, 8), "hwloc 2.");
}

TEST_F(Hwloc, OfThisHostDoesNotMoveTheThread) {
  const CpuSet before = CpuSet::of_this_thread();
  const auto hwloc = open_hwloc();
  ASSERT_TRUE(hwloc) << hwloc.error().what;
  EXPECT_EQ(CpuSet::of_this_thread(), before);
}

}  // namespace
}  // namespace slime
