#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/net/socket.h"

namespace slime {
namespace {

using testing::HasSubstr;

SocketAddress address(const char* text) {
  auto parsed = SocketAddress::parse(text);
  EXPECT_TRUE(parsed) << parsed.error().what;
  return parsed.value_or(SocketAddress());
}

TEST(SocketAddress, ParsesAndPrints) {
  const struct {
    const char* text;
    const char* printed;
    const char* host;
    uint16_t port;
    bool ipv6;
  } cases[] = {
      {"10.0.0.1", "10.0.0.1:0", "10.0.0.1", 0, false},
      {"10.0.0.1:80", "10.0.0.1:80", "10.0.0.1", 80, false},
      {"255.255.255.255:65535", "255.255.255.255:65535", "255.255.255.255", 65535, false},
      {"::1", "[::1]:0", "::1", 0, true},
      {"[::1]", "[::1]:0", "::1", 0, true},
      {"[fd00::1]:4791", "[fd00::1]:4791", "fd00::1", 4791, true},
      {"fe80::1%1", "[fe80::1%1]:0", "fe80::1%1", 0, true},
      {"[fe80::1%4294967295]:1", "[fe80::1%4294967295]:1", "fe80::1%4294967295", 1, true},
      {"[::ffff:10.0.0.1]:5", "[::ffff:10.0.0.1]:5", "::ffff:10.0.0.1", 5, true},
  };
  for (const auto& c : cases) {
    const SocketAddress parsed = address(c.text);
    EXPECT_EQ(parsed.to_string(), c.printed);
    EXPECT_EQ(parsed.host(), c.host);
    EXPECT_EQ(parsed.port(), c.port);
    EXPECT_EQ(parsed.is_ipv6(), c.ipv6);
    EXPECT_EQ(address(c.printed), parsed) << "printed form of " << c.text;
  }
}

TEST(SocketAddress, RefusesWhatIsNoNumericAddress) {
  const std::string cases[] = {"",
                               ":",
                               ":80",
                               "[]",
                               "[]:80",
                               "localhost:80",
                               "10.0.0:80",
                               "10.0.0.256",
                               "010.0.0.1.",
                               "10.0.0.1:",
                               "10.0.0.1:65536",
                               "10.0.0.1:-1",
                               "10.0.0.1:+1",
                               "10.0.0.1:8o",
                               "10.0.0.1%1",
                               "10.0.0.1%1:80",
                               " 10.0.0.1",
                               "10.0.0.1 ",
                               "[10.0.0.1]:80",
                               "[::1",
                               "[::1]80",
                               "[::1]:",
                               "[::1]:99999",
                               "[::1]]",
                               "::1::2",
                               "fe80::1%",
                               "[fe80::1%no-such-interface]:1",
                               "[fe80::1%4294967296]:1",
                               std::string("10.0.0.1\0", 9),
                               std::string(100000, '1'),
                               std::string(100000, ':')};
  for (const std::string& text : cases) {
    const auto parsed = SocketAddress::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().status, Status::kInvalid);
    EXPECT_LT(parsed.error().what.size(), 250u);
  }
}

TEST(SocketAddress, ScopeByInterfaceName) {
  const auto parsed = SocketAddress::parse("fe80::1%lo");
  ASSERT_TRUE(parsed) << parsed.error().what;
  EXPECT_GT(parsed->scope(), 0u);
  EXPECT_EQ(address("10.0.0.1").scope(), 0u);
}

TEST(SocketAddress, Classes) {
  EXPECT_TRUE(SocketAddress().is_any());
  EXPECT_TRUE(address("[::]:5").is_any());
  EXPECT_TRUE(address("127.1.2.3").is_loopback());
  EXPECT_TRUE(address("::1").is_loopback());
  EXPECT_TRUE(address("169.254.7.7").is_link_local());
  EXPECT_TRUE(address("fe80::1").is_link_local());
  for (const char* global : {"10.0.0.1", "128.0.0.1", "169.253.0.1", "fd00::1"}) {
    EXPECT_FALSE(address(global).is_any()) << global;
    EXPECT_FALSE(address(global).is_loopback()) << global;
    EXPECT_FALSE(address(global).is_link_local()) << global;
  }
}

TEST(SocketAddress, EqualityLooksAtEveryPart) {
  EXPECT_EQ(address("10.0.0.1:80"), address("10.0.0.1:80"));
  EXPECT_FALSE(address("10.0.0.1:80") == address("10.0.0.1:81"));
  EXPECT_FALSE(address("10.0.0.1:80") == address("10.0.0.2:80"));
  EXPECT_FALSE(address("fe80::1%1") == address("fe80::1%2"));
  EXPECT_FALSE(address("0.0.0.0") == address("::"));
}

TEST(SocketAddress, WireFormIsFixed) {
  const auto wire = address("[fe80::102%7]:258").pack();
  const unsigned char expected[28] = {6, 0, 1, 2, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0,
                                      0, 0, 0, 0, 1,    2,    0, 0, 0, 7, 0, 0, 0, 0};
  EXPECT_EQ(memcmp(wire.data(), expected, sizeof expected), 0);
  const auto wire4 = address("1.2.3.4:5").pack();
  const unsigned char expected4[28] = {4, 0, 0, 5, 1, 2, 3, 4};
  EXPECT_EQ(memcmp(wire4.data(), expected4, sizeof expected4), 0);
}

TEST(SocketAddress, UnpacksWhatItPacked) {
  for (const char* text : {"10.0.0.1:80", "0.0.0.0:0", "[::1]:4791", "[fe80::1%9]:65535"}) {
    const auto unpacked = SocketAddress::unpack(address(text).pack());
    ASSERT_TRUE(unpacked) << unpacked.error().what;
    EXPECT_EQ(*unpacked, address(text));
  }
}

TEST(SocketAddress, UnpackRefusesDamage) {
  const auto good = address("10.0.0.1:80").pack();
  const auto refused = [](std::span<const std::byte> wire, const char* why) {
    const auto unpacked = SocketAddress::unpack(wire);
    ASSERT_FALSE(unpacked) << why;
    EXPECT_EQ(unpacked.error().status, Status::kInvalid);
    EXPECT_THAT(unpacked.error().what, HasSubstr(why));
  };
  refused({}, "length");
  refused(std::span(good).first(27), "length");
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.push_back(std::byte{0});
  refused(longer, "length");
  for (const int family : {0, 2, 5, 10, 255}) {
    auto wire = good;
    wire[0] = std::byte(family);
    refused(wire, "IPv4");
  }
  for (const size_t at : {size_t{1}, size_t{24}, size_t{27}}) {
    auto wire = good;
    wire[at] = std::byte{1};
    refused(wire, "padding");
  }
  for (const size_t at : {size_t{8}, size_t{19}, size_t{23}}) {
    auto wire = good;
    wire[at] = std::byte{1};
    refused(wire, "IPv4 address are not zero");
  }
}

TEST(SocketAddress, RandomBytesAreRefusedOrSurviveARoundTrip) {
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    SocketAddress::Wire wire{};
    for (auto& byte : wire) byte = std::byte(random());
    wire[0] = std::byte(random() % 8);
    if (random() % 2 == 0) wire[1] = std::byte{0};
    if (random() % 2 == 0) std::fill(wire.begin() + 24, wire.end(), std::byte{0});
    const auto unpacked = SocketAddress::unpack(wire);
    if (!unpacked) continue;
    ++accepted;
    ASSERT_EQ(unpacked->pack(), wire);
  }
  EXPECT_GT(accepted, 100);
}

TEST(SocketAddress, FromTheKernel) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(9);
  v4.sin_addr.s_addr = htonl(0x0a000001);
  memset(v4.sin_zero, 0xff, sizeof v4.sin_zero);  // uninitialised in what callers pass
  const auto* any = reinterpret_cast<const sockaddr*>(&v4);
  EXPECT_EQ(*SocketAddress::from_sockaddr(any, sizeof v4), address("10.0.0.1:9"));
  EXPECT_FALSE(SocketAddress::from_sockaddr(any, sizeof v4 - 1));
  EXPECT_FALSE(SocketAddress::from_sockaddr(any, 0));
  EXPECT_FALSE(SocketAddress::from_sockaddr(nullptr, sizeof v4));
  sockaddr local{};
  local.sa_family = AF_UNIX;
  EXPECT_FALSE(SocketAddress::from_sockaddr(&local, sizeof local));
}

}  // namespace
}  // namespace slime
