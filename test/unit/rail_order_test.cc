// Rails as NCCL is shown them.
#include "transports/rail_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/fake_rail.h"

namespace slime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Rails = std::vector<std::unique_ptr<Rail>>;

constexpr const char* kRoot = "/sys/devices/pci0000:00/";

void add(Rails* rails, const std::string& name, const std::string& path, uint64_t guid = 1,
         int port = 0) {
  RailCaps caps = test::fake_caps(name, guid);
  caps.pci_path = path.empty() ? "" : kRoot + path;
  caps.port = port;
  rails->push_back(std::make_unique<test::FakeRail>(caps));
}

std::vector<std::string> names(const Rails& rails) {
  std::vector<std::string> result;
  for (const auto& rail : rails) result.push_back(rail->caps().name);
  return result;
}

TEST(RailOrder, ByPciAddressNotByPath) {
  Rails rails;
  add(&rails, "veth", "");
  add(&rails, "far", "10000:00:02.0/10000:01:00.0");
  add(&rails, "second", "0000:00:02.0/0000:0a:00.0");  // the path of the lower root port
  add(&rails, "first.0", "0000:00:1c.0/0000:05:00.0");
  add(&rails, "first.1", "0000:00:1c.0/0000:05:00.0");
  add(&rails, "bridge", "");
  put_in_order(&rails);
  EXPECT_THAT(names(rails), ElementsAre("first.0", "first.1", "second", "far", "veth", "bridge"));
}

TEST(RailOrder, NamesRailsThatShareGuidAndPort) {
  Rails rails;
  add(&rails, "mlx5_0", "0000:05:00.0", 0, 1);
  add(&rails, "mlx5_1", "0000:05:00.1", 0, 1);
  add(&rails, "mlx5_2", "0000:05:00.2", 0, 2);
  add(&rails, "mlx5_3", "0000:05:00.3", 7, 1);
  EXPECT_THAT(describe_shared_guids(rails),
              ElementsAre(AllOf(HasSubstr("mlx5_0 (0000:05:00.0) and mlx5_1 (0000:05:00.1)"),
                                HasSubstr("GUID, 0x0000000000000000, and one port, 1"),
                                HasSubstr("node_guid"))));
}

TEST(RailOrder, SocketsPortsAndVlansShareAGuidRightly) {
  Rails rails;
  add(&rails, "eth0.0", "0000:05:00.0", 7);
  add(&rails, "eth0.1", "0000:05:00.0", 7);
  add(&rails, "eth0.100", "", 7);  // a VLAN of the NIC
  add(&rails, "eth0.200", "", 7);
  add(&rails, "two", "0000:05:00.0", 7, 1);
  EXPECT_THAT(describe_shared_guids(rails), IsEmpty());
}

}  // namespace
}  // namespace slime
