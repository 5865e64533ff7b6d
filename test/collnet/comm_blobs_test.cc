// What members of a session tell each other, where it cannot be: an error that names the rank.
#include "collnet/comm/comm_blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "collnet/worker/worker.h"

namespace slime {
namespace {

using testing::HasSubstr;

std::vector<CommMember> members() {
  std::vector<CommMember> all(3);
  for (CommMember& member : all) {
    member.lanes = 64;
    member.rails = 2;
    member.switch_count = 1;
    member.switches[0] = {SocketAddress::parse("10.0.0.9:28900")->pack(), 1};
    for (auto& address : member.addresses) address = SocketAddress::parse("10.0.0.1:4000")->pack();
  }
  return all;
}

TEST(CommBlobs, AnotherVersionIsNamedWithItsRank) {
  EXPECT_TRUE(check_versions(std::vector{kCommVersion, kCommVersion}));
  EXPECT_THAT(check_versions(std::vector<uint32_t>{kCommVersion, 6}).error().what,
              HasSubstr("rank 1 speaks version 6 of CollNet's protocols and this rank version 7"));
}

TEST(CommBlobs, AddressesAreThoseOfTheRailsThatAllHave) {
  auto all = members();
  all[1].rails = 1;
  const auto addresses = addresses_of(all);
  ASSERT_TRUE(addresses);
  EXPECT_EQ(addresses->rails, 1u);
  EXPECT_EQ(addresses->all.size(), 3u);
}

TEST(CommBlobs, MembersThatCannotBeAreNamed) {
  const auto error_of = [](const std::function<void(CommMember&)>& change) {
    auto all = members();
    change(all[1]);
    const auto addresses = addresses_of(all);
    return addresses ? "none" : addresses.error().what;
  };
  EXPECT_THAT(error_of([](CommMember& m) { m.rails = 9; }), HasSubstr("rank 1 tells us of 9"));
  EXPECT_THAT(error_of([](CommMember& m) { m.rails = 0; }), HasSubstr("0 rails"));
  EXPECT_THAT(error_of([](CommMember& m) { m.lanes = Worker::kLeastLanes - 1; }),
              HasSubstr("packets of 15 lanes"));
  EXPECT_THAT(error_of([](CommMember& m) { m.addresses[1] = {}; }),
              HasSubstr("rank 1 tells us of a malformed address (socket address"));
}

TEST(CommBlobs, RanksNameTheSameListOrOneLeafEach) {
  const auto error_of = [](const std::function<void(std::vector<CommMember>&)>& change) {
    auto all = members();
    change(all);
    const auto named = switches_of(all);
    return named ? "none" : named.error().what;
  };
  const CommSwitch other{SocketAddress::parse("10.0.0.8:28900")->pack(), 2};
  const auto add_other = [&](CommMember& m) { m.switches[m.switch_count++] = other; };
  EXPECT_EQ(error_of([&](auto& all) { all[1].switches[0] = other; }), "none") << "a tree";
  EXPECT_EQ(error_of([&](auto& all) { std::ranges::for_each(all, add_other); }), "none");
  EXPECT_THAT(error_of([&](auto& all) { add_other(all[1]); }), HasSubstr("rank 1 names other"));
  EXPECT_THAT(error_of([&](auto& all) { add_other(all[0]); }), HasSubstr("rank 1 names other"));
  EXPECT_THAT(error_of([&](auto& all) {
                std::ranges::for_each(all, add_other);
                all[2].switches[1].weight = 1;
              }),
              HasSubstr("rank 2 names other switches than rank 0"));
  EXPECT_THAT(error_of([&](auto& all) { all[2].switch_count = 0; }), HasSubstr("rank 2 tells us"));
  EXPECT_THAT(error_of([&](auto& all) { all[2].switch_count = 9; }), HasSubstr("9 switches"));
  EXPECT_THAT(error_of([&](auto& all) { all[2].switches[0].weight = 65; }), HasSubstr("weight 65"));
  EXPECT_THAT(error_of([&](auto& all) { all[2].switches[0].control = {}; }), HasSubstr("rank 2"));
}

TEST(CommBlobs, GrantsThatCannotBeAreRefused) {
  const Announcement sound{.address = SocketAddress::parse("10.0.0.1:4000")->pack(),
                           .from = Announcement::From::kSwitch,
                           .slots = 16,
                           .lanes = Worker::kLeastLanes,
                           .formats = sap::kWordFormats,
                           .shards = 2};
  EXPECT_TRUE(check_announcement(sound));
  const auto refused = [&](const std::function<void(Announcement&)>& change) {
    Announcement grant = sound;
    change(grant);
    return !check_announcement(grant);
  };
  EXPECT_TRUE(refused([](Announcement& g) { g.lanes = Worker::kLeastLanes - 1; }));
  EXPECT_TRUE(refused([](Announcement& g) { g.slots = 0; }));
  EXPECT_TRUE(refused([](Announcement& g) { g.slots = 65537; }));
  EXPECT_TRUE(refused([](Announcement& g) { g.shards = 17; }));
  EXPECT_TRUE(refused([](Announcement& g) { g.formats = 1; }));
  EXPECT_TRUE(refused([](Announcement& g) { g.formats |= 1 << 5; }));
  EXPECT_TRUE(refused([](Announcement& g) { g.from = static_cast<Announcement::From>(7); }));
}

TEST(CommBlobs, PartsOfATreeAreOfOneJob) {
  const std::vector<Branch> branches = {{.control = {}, .ranks = {0}},
                                        {.control = {}, .ranks = {1}}};
  const auto differ_in = [&](const std::function<void(Announcement&)>& change) {
    std::vector<Announcement> grants(2, {.from = Announcement::From::kSwitch, .formats = 3});
    change(grants[1]);
    return !check_parts(branches, grants);
  };
  EXPECT_FALSE(differ_in([](Announcement&) {}));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.from = Announcement::From::kNone; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.job = 1; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.generation = 1; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.token = 1; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.slots = 1; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.lanes = 1; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.formats = 7; }));
  EXPECT_TRUE(differ_in([](Announcement& g) { g.shards = 2; }));
}

}  // namespace
}  // namespace slime
