// What a worker keeps for its peers, and how it tells that a switch or a rank is missing.
#include "collnet/worker/slot.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "collnet/worker/branches.h"
#include "collnet/worker/switch_health.h"
#include "test/support/check_oracle.h"

namespace slime {
namespace {

constexpr uint64_t kMs = 1'000'000, kSecond = 1000 * kMs;

// The check holds in the new generation, and again in the one after that.
TEST(KeptResult, IsOfTheJobWhereThatRunsNow) {
  constexpr sap::Contributors kAll = sap::all_ranks(3);
  const JobRoute old{.job = 7, .generation = 3, .token = 0x11};
  sap::Header result = old.header(sap::Type::kResult, 0, 5, 42);
  std::array<std::byte, 32> payload{};
  payload[3] = std::byte{9};
  result.lanes = 8;
  result.check = sap::check_of(result.format, payload, 0) + kAll.factors * sap::salt(result);

  std::array<std::byte, sap::kHeaderBytes + 32> memory;
  KeptResult kept;
  kept.use(memory.data());
  EXPECT_TRUE(kept.packet_for(old, kAll).empty());
  kept.keep(result, payload);
  for (const uint8_t generation : {4, 5}) {
    const JobRoute now{.job = 8, .generation = generation, .token = 0x22u + generation};
    const auto packet = kept.packet_for(now, kAll);
    sap::Header header;
    ASSERT_EQ(sap::decode(packet, &header), sap::Fault::kNone);
    EXPECT_TRUE(now.names(header));
    EXPECT_EQ(header.token, now.token);
    EXPECT_EQ(header.type, sap::Type::kResultAgain);
    EXPECT_EQ(header.flags, sap::flag::kFallback);
    EXPECT_EQ(header.slot, 5);
    EXPECT_EQ(header.epoch, 42u);
    EXPECT_TRUE(sap::verifies(header, packet.subspan(sap::kHeaderBytes), kAll));
  }
}

TEST(RankAhead, IsTheFirstThatHasAcceptedTheRound) {
  const std::vector<uint32_t> epochs = {5, 9, 6, 9, 6, 8};  // three ranks of two slots
  EXPECT_EQ(rank_ahead(epochs, 2, 0, 5), 1u);
  EXPECT_EQ(rank_ahead(epochs, 2, 0, 6), std::nullopt);
  EXPECT_EQ(rank_ahead(epochs, 2, 1, 8), 0u);
  EXPECT_EQ(rank_ahead({}, 2, 0, 5), std::nullopt);
  EXPECT_EQ(rank_ahead(std::vector<uint32_t>{UINT32_MAX, 0}, 1, 0, UINT32_MAX), 1u) << "wraps";
}

TEST(JobRoute, GoesToTheShardOrToTheRankOfTheSlot) {
  const JobRoute route{.shards = 2, .rails = 2};
  EXPECT_EQ(route.served_by(6, 3), (Destination{Destination::Kind::kShard, 0, 1}));
  const JobRoute direct{.direct = true};
  EXPECT_EQ(direct.served_by(7, 3), (Destination{Destination::Kind::kRank, 1, 0}));
}

Error silence() { return make_error(Status::kTimeout, 0, "silent"); }

TEST(SwitchHealth, CountsTimeInWhichSomebodyListened) {
  SwitchHealth health(2 * kSecond, 300 * kMs);
  health.observe(kSecond);
  const uint64_t since = health.observed_ns();
  health.observe(100 * kSecond);  // a gap: a quarter of the limit counts
  EXPECT_FALSE(health.is_silent(0, since));
  for (uint64_t look = 1; look <= 3; ++look) health.observe(100 * kSecond + look * 500 * kMs);
  EXPECT_TRUE(health.is_silent(0, since));
}

TEST(SwitchHealth, SilenceEndsWithAPacketAndOtherTroubleStays) {
  SwitchHealth health(2 * kSecond, 300 * kMs);
  health.report_silence(1, 0b10, 2, silence());
  EXPECT_TRUE(health.trouble());
  health.heard_on(0);
  EXPECT_TRUE(health.trouble());
  health.heard_on(1);
  EXPECT_FALSE(health.trouble());

  health.report(make_error(Status::kRemote, 0, "refused"));
  health.report_damage(make_error(Status::kRemote, 0, "damaged"));
  health.heard_on(1);
  ASSERT_TRUE(health.trouble());
  EXPECT_EQ(health.trouble()->what, "refused");
  EXPECT_FALSE(health.is_damage());
  health.reset(kSecond);
  EXPECT_FALSE(health.trouble());

  health.report_damage(make_error(Status::kRemote, 0, "damaged"));
  EXPECT_TRUE(health.trouble() && health.is_damage());
  health.reset(2 * kSecond);
  EXPECT_FALSE(health.trouble() || health.is_damage());
}

TEST(SwitchHealth, ARailIsLostWhereOthersAreHeard) {
  SwitchHealth health(2 * kSecond, 300 * kMs);
  for (uint64_t ms = 1; ms < 3000; ++ms) {
    health.observe(ms * kMs);
    health.heard_on(0);
  }
  health.report_silence(1, 0b10, 2, silence());
  EXPECT_EQ(health.lost_rails(), 0b10u);
  for (uint64_t ms = 3000; ms < 5000; ++ms) health.observe(ms * kMs);
  health.report_silence(1, 0b11, 2, silence());
  EXPECT_EQ(health.lost_rails(), 0u) << "the switch is lost, not a rail";
}

TEST(Stragglers, AreReportedOnceAndNotAllTheTime) {
  Stragglers stragglers({}, 0, 4);
  EXPECT_EQ(stragglers.missing(), "");
  stragglers.on_status({.bits = 0b0101}, kSecond);
  EXPECT_EQ(stragglers.take_report(), "1, 3");
  stragglers.on_status({.bits = 0b0101}, 20 * kSecond);
  EXPECT_EQ(stragglers.take_report(), std::nullopt) << "the same";
  stragglers.on_status({.bits = 0b0111}, 20 * kSecond);
  EXPECT_EQ(stragglers.take_report(), "3");
  stragglers.on_status({.bits = 0b0001}, 21 * kSecond);
  EXPECT_EQ(stragglers.take_report(), std::nullopt) << "too soon";
  EXPECT_EQ(stragglers.missing(), "1-3");
  stragglers.on_status({.bits = 0b1111}, 30 * kSecond);
  EXPECT_EQ(stragglers.missing(), "");
}

TEST(Stragglers, AreNamedBelowTheirSwitch) {
  const auto at = [](const char* address) { return SocketAddress::parse(address).value(); };
  const std::vector<Branch> branches = {{at("10.0.0.1:28900"), {0, 2}},
                                        {at("10.0.0.2:28900"), {1, 3}}};
  Stragglers stragglers(branches, 1, 4);
  stragglers.on_status({.bits = 0b01}, kSecond);
  EXPECT_EQ(stragglers.missing(), "3");
  stragglers.on_status({.bits = 0b10, .at_root = true}, kSecond);
  EXPECT_EQ(stragglers.missing(), "0, 2 (below the switch at 10.0.0.1:28900)");
  stragglers.on_status({.bits = 0b1011, .direct = true}, kSecond);
  EXPECT_EQ(stragglers.missing(), "2");
  stragglers.clear();
  EXPECT_EQ(stragglers.missing(), "");
}

}  // namespace
}  // namespace slime
