// Subnets, routes and counters of interfaces, as the kernel tells them of this host.
#include "base/interfaces/route.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "base/interfaces/subnet_path.h"
#include "base/interfaces/traffic.h"
#include "base/net/dialer.h"

namespace slime {
namespace {

SocketAddress at(const char* text) { return SocketAddress::parse(text).value(); }

TEST(AddressRange, IsTheSubnetOfAnAddress) {
  const auto around = [](const char* address, int bits) {
    return AddressRange::around(at(address), bits).to_string();
  };
  EXPECT_EQ(around("10.1.18.3", 20), "10.1.16.0/20");
  EXPECT_EQ(around("10.1.18.3", 32), "10.1.18.3/32");
  EXPECT_EQ(around("10.1.18.3", 0), "0.0.0.0/0");
  EXPECT_EQ(around("fd00:1:2:3::9", 64), "fd00:1:2:3::/64");
  EXPECT_EQ(around("fd00:1:2:3::9", 61), "fd00:1:2::/61");
  EXPECT_TRUE(AddressRange::around(at("10.1.18.3"), 20).has(at("10.1.31.255")));
  EXPECT_FALSE(AddressRange::around(at("10.1.18.3"), 20).has(at("10.1.32.0")));
}

TEST(Route, ToThisHostIsNoUnicast) {
  const auto route = find_route(at("127.0.0.1"), at("127.0.0.2"));
  ASSERT_TRUE(route);
  EXPECT_FALSE(route->unicast);
  EXPECT_EQ(route->interface, if_nametoindex("lo"));
  EXPECT_FALSE(find_route(at("127.0.0.1"), at("::1"))) << "of two IP versions";
}

TEST(Route, LoopbackIsNotBoundNorRemarkable) {
  const auto list = list_interfaces("=lo").value();
  ASSERT_EQ(list.interfaces.size(), 1u);
  const Interface& loopback = list.interfaces[0];
  EXPECT_EQ(loopback.subnet, "127.0.0.0/8");
  EXPECT_EQ(Outlet(loopback).to_bind(at("127.0.0.9")), "");
  EXPECT_EQ(describe_path(loopback), "");
}

TEST(Traffic, CountsWhatAnInterfaceCarries) {
  const unsigned loopback = if_nametoindex("lo");
  const auto before = traffic_of(loopback);
  ASSERT_TRUE(before);
  const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress nobody = at("127.0.0.1:9");
  std::array<char, 1000> bytes{};
  ASSERT_EQ(sendto(fd.get(), bytes.data(), bytes.size(), 0, nobody.data(), nobody.size()), 1000);
  const Traffic carried = *traffic_of(loopback) - *before;
  EXPECT_GE(carried.sent, 1000u);
  EXPECT_GE(carried.received, 1000u);
  EXPECT_FALSE(traffic_of(1u << 30));
}

// Answers may come by another interface, which a bound socket does not hear.
TEST(Dialer, TriesBoundAndUnboundByTurnsWhereNobodyAnswers) {
  if (!can_bind_to("lo")) GTEST_SKIP() << "this kernel lets root alone bind to an interface";
  const Fd full = *listen_on(at("127.0.0.1"), 0);
  const SocketAddress silent = *local_address(full);
  const Fd filling[] = {*start_connect(silent), *start_connect(silent)};
  Dialer dialer(silent, {.pause_ns = 0, .try_ns = 300, .interface = "lo", .bound_try_ns = 100});
  Error error;
  uint64_t now_ns = 0;
  for (const bool bound : {true, false, true, false}) {
    ASSERT_EQ(dialer.progress(now_ns, &error), Status::kAgain);
    EXPECT_EQ(dialer.is_bound(), bound);
    EXPECT_EQ(dialer.due_ns() - now_ns, 100u);
    now_ns = dialer.due_ns();
    ASSERT_EQ(dialer.progress(now_ns, &error), Status::kAgain);
    EXPECT_FALSE(dialer.fd());
  }
}

TEST(Dialer, StaysBoundAfterAReset) {
  if (!can_bind_to("lo")) GTEST_SKIP() << "this kernel lets root alone bind to an interface";
  const Fd listener = *listen_on(at("127.0.0.1"));
  Dialer dialer(*local_address(listener), {.pause_ns = 0, .interface = "lo"});
  Error error;
  for (int i = 0; i < 3; ++i) {
    Status status;
    while ((status = dialer.progress(0, &error)) == Status::kAgain) {
    }
    ASSERT_EQ(status, Status::kOk) << error.what;
    EXPECT_TRUE(dialer.is_bound());
    Error reset{Status::kRemote, ECONNRESET, "reset"};
    ASSERT_EQ(dialer.again(0, &reset), Status::kAgain);
  }
}

}  // namespace
}  // namespace slime
