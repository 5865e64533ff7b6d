// Which rails of two hosts can be paired, and what both ends say of those that cannot.
#include "link/setup/rail_description.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/support/fake_rail.h"
#include "test/support/tcp_link.h"

namespace slime::test {
namespace {

RailCaps mlx5(const std::string& link_layer, const std::string& fabric) {
  RailCaps caps = fake_caps("mlx5_0");
  caps.transport = "verbs";
  caps.link_layer = link_layer;
  caps.fabric = fabric;
  caps.speed_mbps = 400'000;
  return caps;
}

RailDescription describe(const RailCaps& caps) {
  FakeRail rail(caps);
  Rail* const rails[] = {&rail};
  return describe_rails(rails).all[0];
}

Result<void> fit(const RailDescription& own, const RailDescription& peer) {
  static const std::string here = "here:1", there = "there:2";
  return check_fit({own, here}, {peer, there});
}
Result<void> fit(const RailCaps& own, const RailCaps& peer) {
  return fit(describe(own), describe(peer));
}

TEST(RailDescription, RailsOfOneKindFit) {
  EXPECT_TRUE(fit(mlx5("ethernet", ""), mlx5("ethernet", "")));
  EXPECT_TRUE(fit(mlx5("infiniband", "fe80::"), mlx5("infiniband", "fe80::")));
  EXPECT_TRUE(fit(mlx5("", "fe80::"), mlx5("ethernet", ""))) << "empty fits any";
}

TEST(RailDescription, WhatDiffersIsNamed) {
  struct Case {
    RailCaps own, peer;
    const char* says;
  };
  const Case cases[] = {
      {fake_caps("eth7"), mlx5("ethernet", ""), "different transports"},
      {mlx5("ethernet", ""), mlx5("infiniband", ""), "link layers"},
      {mlx5("infiniband", "fe80::"), mlx5("infiniband", "fec0::7"), "different fabrics"},
  };
  for (const Case& c : cases) {
    const auto result = fit(c.own, c.peer);
    ASSERT_FALSE(result) << c.says;
    const std::string& what = result.error().what;
    for (const char* const text : {c.says, "of here:1", "of there:2"}) {
      EXPECT_NE(what.find(text), std::string::npos) << what;
    }
    for (const RailCaps& caps : {c.own, c.peer}) {
      for (const std::string& text : {caps.name, caps.transport, caps.link_layer, caps.fabric}) {
        EXPECT_NE(what.find(text), std::string::npos) << what;
      }
    }
  }
}

TEST(RailDescription, TheSlowerEndSaysWhatAChannelCanCarry) {
  RailDescription peer = describe(mlx5("", ""));
  EXPECT_EQ(common_speed_mbps(describe(fake_caps("eth0")), peer), fake_caps("eth0").speed_mbps);
  peer.speed_mbps = 100;
  EXPECT_EQ(common_speed_mbps(describe(mlx5("", "")), peer), 100u);
  peer.speed_mbps = 0;
  EXPECT_EQ(common_speed_mbps(describe(mlx5("", "")), peer), 400'000u)
      << "a peer that does not know";
}

TEST(RailDescription, ControlCharactersOfAPeerAreReplaced) {
  RailDescription peer;
  peer.name.fill('\033');  // and no zero at the end
  peer.backend = {'f', '\n', 'k', 'e'};
  const auto result = fit(describe(fake_caps("eth0")), peer);
  ASSERT_FALSE(result);
  EXPECT_TRUE(std::ranges::none_of(result.error().what, [](char c) { return c < ' '; }));
  std::string shown(peer.name.size(), '?');
  shown += " (f?ke)";
  EXPECT_NE(result.error().what.find(shown), std::string::npos) << result.error().what;
}

// "0-1 1-0": pairs of the active end's rails and the passive end's.
std::string pairs(const std::vector<std::string>& active, const std::vector<std::string>& passive) {
  const auto described = [](const std::vector<std::string>& subnets) {
    RailDescriptions all;
    for (const std::string& subnet : subnets) {
      RailCaps caps = fake_caps("eth0");
      caps.subnet = subnet;
      all.all[all.count++] = describe(caps);
    }
    return all;
  };
  std::string text;
  for (const RailPair& pair : pair_rails(described(active), described(passive))) {
    text += std::to_string(pair.active) + "-" + std::to_string(pair.passive) + " ";
  }
  return text;
}

TEST(RailDescription, RailsOfOneSubnetArePaired) {
  EXPECT_EQ(pairs({"a", "b"}, {"a", "b"}), "0-0 1-1 ");
  EXPECT_EQ(pairs({"a", "b"}, {"b", "a"}), "0-1 1-0 ");
  EXPECT_EQ(pairs({"a", "a"}, {"a", "a"}), "0-0 1-1 ") << "in order where all are alike";
  EXPECT_EQ(pairs({"", ""}, {"", ""}), "0-0 1-1 ") << "and where nothing is known";
  EXPECT_EQ(pairs({"a", "b"}, {"c", "d"}), "0-0 1-1 ") << "routed";
  EXPECT_EQ(pairs({"a", "b", "c"}, {"c", "x", "a"}), "0-2 1-1 2-0 ");
  EXPECT_EQ(pairs({"a", "b", "a", "b"}, {"b", "a", "b", "a"}), "0-1 1-2 2-3 3-0 ")
      << "two sockets of each NIC";
}

TEST(RailDescription, EveryRailOfTheLargerEndIsPaired) {
  EXPECT_EQ(pairs({"a"}, {"a", "b"}), "0-0 0-1 ");
  EXPECT_EQ(pairs({"b"}, {"a", "b"}), "0-0 0-1 ");
  EXPECT_EQ(pairs({"b", "a", "c"}, {"a", "b"}), "0-1 1-0 2-0 ");
  EXPECT_EQ(pairs({"", "", ""}, {"", ""}), "0-0 1-1 2-0 ");
  EXPECT_EQ(pairs({"a", "a", "a", "b"}, {"a", "b"}), "0-0 1-0 2-1 3-1 ");
  EXPECT_EQ(pairs({"a", "a"}, {"a", "c"}), "0-0 1-1 ") << "c may be reached by a router";
  EXPECT_EQ(pairs({"a", "a", "b", "b"}, {"a", "b", "c"}), "0-0 1-0 2-1 3-2 ") << "all are used";
}

// The listener judges first and tells the peer; both logs name both rails.
TEST(RailDescription, BothEndsSayWhyTheyCannotBePaired) {
  Settings settings;
  settings.rails_per_if = 2;
  TcpHost from(settings), to(settings);
  to.rails[1]->shown.transport = "verbs";
  Handle handle;
  auto listener = Listener::open(*to.devices, 0, &handle);
  ASSERT_TRUE(listener) << listener.error().what;
  auto connector = Connector::open(*from.devices, 0, handle);
  ASSERT_TRUE(connector) << connector.error().what;
  Error sender, receiver;
  ASSERT_TRUE(in_time([&] {
    if (auto step = (*listener)->accept(); !step) receiver = step.error();
    if (auto step = (*connector)->step(); !step) sender = step.error();
    return !sender.what.empty() && !receiver.what.empty();
  }));
  EXPECT_EQ(receiver.status, Status::kConfig) << receiver.what;
  EXPECT_EQ(sender.status, Status::kRemote) << sender.what;
  for (const Error& error : {sender, receiver}) {
    EXPECT_NE(error.what.find("rail lo.1 (verbs"), std::string::npos) << error.what;
    EXPECT_NE(error.what.find("cannot be paired with rail lo.1 (tcp"), std::string::npos)
        << error.what;
  }
}

TEST(RailDescription, AListenerWithoutAnAddressSaysSo) {
  for (const char* const address : {"", "0.0.0.0", "::"}) {
    TcpHost to((Settings()));
    to.rails[0]->shown.oob_address = address;
    Handle handle;
    const auto listener = Listener::open(*to.devices, 0, &handle);
    ASSERT_FALSE(listener);
    EXPECT_NE(listener.error().what.find("NCCL_SLIME_IFNAME"), std::string::npos)
        << listener.error().what;
  }
}

}  // namespace
}  // namespace slime::test
