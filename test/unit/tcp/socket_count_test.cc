// How many sockets an interface gets by itself.
#include "transports/tcp/socket_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transports/tcp/rail.h"

namespace slime::tcp {
namespace {

// `speed_mbps` 0: the driver does not tell.
Interface nic(const std::string& driver, uint32_t speed_mbps) {
  Interface interface;
  interface.name = "eth0";
  interface.address = *SocketAddress::parse("10.0.0.1");
  interface.driver = driver;
  interface.speed_known = speed_mbps != 0;
  if (speed_mbps != 0) interface.speed_mbps = speed_mbps;
  return interface;
}

int automatic(const std::string& driver, uint32_t speed_mbps) {
  return count_sockets(nic(driver, speed_mbps), 0).sockets;
}

TEST(TcpSocketCount, OneUpToWhatACoreFillsOnAPlainNic) {
  const struct {
    uint32_t mbps;
    int sockets;
  } cases[] = {{10, 1},    {1000, 1},   {10000, 1},  {25000, 1},      {25001, 2},     {40000, 2},
               {50000, 2}, {100000, 4}, {200000, 4}, {10'000'000, 4}, {4294967295, 4}};
  for (const auto& c : cases) EXPECT_EQ(automatic("mlx5_core", c.mbps), c.sockets) << c.mbps;
  EXPECT_EQ(automatic("ixgbe", 0), 1) << "an unknown speed asks for nothing";
}

TEST(TcpSocketCount, SeveralWhereAFlowIsCapped) {
  EXPECT_EQ(automatic("ena", 5000), 1);
  EXPECT_EQ(automatic("ena", 10000), 2);
  EXPECT_EQ(automatic("ena", 25000), 5);
  EXPECT_EQ(automatic("ena", 100000), 8);
  EXPECT_EQ(automatic("ena", 0), 8) << "ena does not tell its speed on most instances";
  for (const char* driver : {"gve", "gvnic", "virtio_net", "hv_netvsc", "mana"}) {
    EXPECT_EQ(automatic(driver, 1000), 1) << driver;
    EXPECT_EQ(automatic(driver, 32000), 4) << driver;
    EXPECT_EQ(automatic(driver, 200000), 8) << driver;
    EXPECT_EQ(automatic(driver, 0), 4) << driver;
  }
  EXPECT_EQ(automatic("bonding", 20000), 2);
  EXPECT_EQ(automatic("bonding", 50000), 5);
}

TEST(TcpSocketCount, OneWithoutADriverAndOnLoopback) {
  EXPECT_EQ(automatic("", 0), 1);
  EXPECT_EQ(automatic("", 100000), 1) << "veth and bridges make their speed up";
  Interface loopback = nic("virtio_net", 100000);
  loopback.loopback = true;
  EXPECT_EQ(count_sockets(loopback, 0).sockets, 1);
}

TEST(TcpSocketCount, TheSettingDecidesWhereThereIsOne) {
  for (const int setting : {1, 3, 16}) {
    const SocketCount count = count_sockets(nic("ena", 100000), setting);
    EXPECT_EQ(count.sockets, setting);
    EXPECT_EQ(count.reason, "NCCL_SLIME_RAILS_PER_IF");
  }
}

TEST(TcpSocketCount, TheReasonNamesDriverAndSpeed) {
  using testing::HasSubstr;
  const std::string known = count_sockets(nic("ena", 25000), 0).reason;
  EXPECT_THAT(known, HasSubstr("driver ena"));
  EXPECT_THAT(known, HasSubstr("25000 Mb/s"));
  EXPECT_THAT(count_sockets(nic("gve", 0), 0).reason, HasSubstr("gve, speed unknown"));
}

TEST(TcpSocketCount, RailsAreNamedAndShareTheSpeedByIt) {
  const Settings settings;
  const auto caps = [&](const Interface& interface, int index) {
    return TcpRail::open(interface, settings, index)->caps();
  };
  EXPECT_EQ(caps(nic("mlx5_core", 25000), 0).name, "eth0");
  EXPECT_EQ(caps(nic("mlx5_core", 25000), 0).speed_mbps, 25000u);
  EXPECT_EQ(caps(nic("ena", 25000), 3).name, "eth0.3");
  EXPECT_EQ(caps(nic("ena", 25000), 3).port, caps(nic("ena", 25000), 0).port);
  EXPECT_EQ(caps(nic("ena", 25000), 3).speed_mbps, 5000u);
  EXPECT_THAT(caps(nic("ena", 25000), 3).reason, testing::HasSubstr("driver ena"));
}

}  // namespace
}  // namespace slime::tcp
