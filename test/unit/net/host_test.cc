// The addresses of a host, as users write it, and listening there.
#include "base/net/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/unused_address.h"

namespace slime {
namespace {

using testing::HasSubstr;

// What a user writes, and where it leads; "" is an error that names the setting and the text.
TEST(Resolve, TakesPortsThatExistOnly) {
  const struct {
    std::string text;
    uint16_t default_port;
    const char* printed;
  } cases[] = {
      {"10.0.0.1", 28900, "10.0.0.1:28900"},
      {"10.0.0.1:1", 28900, "10.0.0.1:1"},
      {"10.0.0.1:65535", 28900, "10.0.0.1:65535"},
      {"[::1]:80", 0, "[::1]:80"},
      {"::1", 80, "[::1]:80"},
      {"10.0.0.1", 0, ""},
      {"10.0.0.1:0", 28900, ""},
      {"10.0.0.1:", 28900, ""},
      {"10.0.0.1:65536", 28900, ""},
      {"10.0.0.1:99999", 28900, ""},
      {"10.0.0.1:94436", 28900, ""},
      {"10.0.0.1:4294967376", 28900, ""},
      {"10.0.0.1:-1", 28900, ""},
      {"10.0.0.1:+80", 28900, ""},
      {"10.0.0.1: 80", 28900, ""},
      {"10.0.0.1:80 ", 28900, ""},
      {"10.0.0.1:http", 28900, ""},
      {"10.0.0.1:0x50", 28900, ""},
      {"localhost:99999", 28900, ""},
      {"localhost:", 28900, ""},
      {"[::1]:99999", 28900, ""},
      {"[::1]:", 28900, ""},
      {"[::1]80", 28900, ""},
      {"[::1", 28900, ""},
      {":80", 28900, ""},
      {"", 28900, ""},
      {std::string("127.0.0.1\0.example:80", 21), 28900, ""},
  };
  for (const auto& c : cases) {
    const auto found = resolve(c.text, c.default_port, "the setting");
    EXPECT_EQ(found ? found->front().to_string() : "", c.printed) << c.text;
    if (found) continue;
    EXPECT_EQ(found.error().status, Status::kConfig) << c.text;
    EXPECT_THAT(found.error().what,
                testing::AllOf(testing::StartsWith("the setting: \""), HasSubstr("host:port")));
  }
  const auto name = resolve("localhost:80", 0, "the setting");
  ASSERT_TRUE(name) << name.error().what;
  for (const SocketAddress& one : *name) {
    EXPECT_TRUE(one.is_loopback()) << "of IPv4 or IPv6, as this host's files say";
    EXPECT_EQ(one.port(), 80);
  }
}

// Connects, and returns the address that the listener sees; "" if it fails.
std::string caller_at(const Fd& listener, const char* host) {
  SocketAddress there = *SocketAddress::parse(host);
  there.set_port(local_address(listener)->port());
  const auto fd = start_connect(there);
  Error error;
  Status status = fd ? Status::kAgain : Status::kRemote;
  while (status == Status::kAgain) status = finish_connect(*fd, there, &error);
  if (status != Status::kOk) return "";
  Accepted accepted;
  while ((status = accept_one(listener, &accepted, &error)) == Status::kAgain) {
  }
  return status == Status::kOk ? accepted.peer.host() : "";
}

bool has_ipv6() { return listen_on(*SocketAddress::parse("::1")).has_value(); }

TEST(Listening, OnAllAddressesTakesBothIpVersions) {
  const auto listener = listen_on_all(0);
  ASSERT_TRUE(listener) << listener.error().what;
  EXPECT_EQ(caller_at(*listener, "127.0.0.1"), "127.0.0.1") << "not ::ffff:127.0.0.1";
  if (!has_ipv6()) GTEST_SKIP() << "this host has no IPv6";
  EXPECT_EQ(caller_at(*listener, "::1"), "::1");
}

TEST(Listening, AtAnAddressIsThereOnly) {
  const auto listener = listen_at({"127.0.0.1", 0}, "the setting");
  ASSERT_TRUE(listener) << listener.error().what;
  EXPECT_EQ(local_address(*listener)->host(), "127.0.0.1");
  EXPECT_EQ(caller_at(*listener, "127.0.0.2"), "");
}

TEST(Listening, AtLocalhostIsOnLoopback) {
  const auto listener = listen_at({"localhost", 0}, "the setting");
  ASSERT_TRUE(listener) << listener.error().what;
  EXPECT_TRUE(local_address(*listener)->is_loopback());
}

TEST(Listening, AtANameIsOnAllAddresses) {
  const auto listener = listen_at({"some-host.invalid", 0}, "the setting");
  ASSERT_TRUE(listener) << listener.error().what;
  EXPECT_TRUE(local_address(*listener)->is_any());
  EXPECT_EQ(caller_at(*listener, "127.0.0.2"), "127.0.0.1");
}

}  // namespace
}  // namespace slime
