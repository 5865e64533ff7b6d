#include "base/net/port_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "test/support/unused_address.h"

namespace slime {
namespace {

using testing::HasSubstr;

TEST(PortRange, IsTwoPortsOrOne) {
  const auto range = PortRange::parse("40000-40999").value();
  EXPECT_EQ(range.first, 40000);
  EXPECT_EQ(range.last, 40999);
  EXPECT_EQ(PortRange::parse("65535")->last, 65535);
  for (const char* bad : {"", "-", "0", "0-10", "1-", "-1", "10-9", "1-65536", "40000:40999", "a-b",
                          "40000-40999-", "1 - 2", "+1-2"}) {
    EXPECT_FALSE(PortRange::parse(bad)) << bad;
  }
}

// Below those that the kernel gives (net.ipv4.ip_local_port_range), by this process.
PortRange some_ports(int count) {
  const auto first = static_cast<uint16_t>(20'000 + getpid() % 1'000 * 10);
  return {first, static_cast<uint16_t>(first + count - 1)};
}

TEST(PortRange, AllOfItIsUsedAndThenItSaysSo) {
  const SocketAddress local = SocketAddress::parse("127.0.0.77").value();
  const PortRange ports = some_ports(5);
  std::vector<Fd> listeners;
  std::set<uint16_t> seen;
  for (int i = 0; i < 5; ++i) {
    auto fd = listen_within(local, ports);
    ASSERT_TRUE(fd) << fd.error().what;
    seen.insert(local_address(*fd)->port());
    listeners.push_back(std::move(*fd));
  }
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_EQ(*seen.begin(), ports.first);
  EXPECT_EQ(*seen.rbegin(), ports.last);
  const auto none = listen_within(local, ports);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what,
              HasSubstr("no port of NCCL_SLIME_PORTS=" + std::to_string(ports.first) + "-" +
                        std::to_string(ports.last) + " is free at 127.0.0.77"));
}

TEST(PortRange, WithoutARangeTheKernelChooses) {
  const auto fd = listen_within(SocketAddress::parse("127.0.0.1").value(), {});
  ASSERT_TRUE(fd) << fd.error().what;
  EXPECT_NE(local_address(*fd)->port(), 0);
}

TEST(PortRange, HoldsForDatagrams) {
  const SocketAddress local = SocketAddress::parse("127.0.0.77").value();
  const PortRange ports = some_ports(2);
  const Fd one(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      two(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      three(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(bind_within(one, local, ports));
  EXPECT_TRUE(bind_within(two, local, ports));
  EXPECT_NE(local_address(one)->port(), local_address(two)->port());
  EXPECT_FALSE(bind_within(three, local, ports));
}

// An address that is not there fails at once, with the system's reason.
TEST(PortRange, AnotherFailureIsNoUsedPort) {
  const auto fd = listen_within(SocketAddress::parse("192.0.2.1").value(), {40000, 40999});
  ASSERT_FALSE(fd);
  EXPECT_THAT(fd.error().what, HasSubstr("192.0.2.1"));
  EXPECT_EQ(fd.error().code, EADDRNOTAVAIL);
}

}  // namespace
}  // namespace slime
