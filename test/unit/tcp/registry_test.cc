// The registry of backends, and the rails that tcp finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/interfaces/interfaces.h"
#include "transports/registry.h"
#include "transports/tcp/rail.h"

namespace slime {
namespace {

TEST(Registry, UnknownTransportIsAnErrorThatNamesTheKnownOnes) {
  Settings settings;
  settings.transports = "tcp,carrier-pigeon";
  const auto rails = open_rails(settings, nullptr);
  ASSERT_FALSE(rails);
  EXPECT_EQ(rails.error().status, Status::kConfig);
  EXPECT_NE(rails.error().what.find("\"carrier-pigeon\""), std::string::npos);
  EXPECT_NE(rails.error().what.find("known: auto, verbs ("), std::string::npos);
  EXPECT_NE(rails.error().what.find("NCCL_SLIME_TRANSPORTS"), std::string::npos);
}

TEST(Registry, AnUnknownTransportIsAnsweredWithWhatTheOthersFind) {
  Settings settings;
  settings.ifname = "=lo";
  settings.transports = "carrier-pigeon";
  EXPECT_NE(open_rails(settings, nullptr).error().what.find("tcp (rails here: 1)"),
            std::string::npos);
  settings.ifname = "=no-such-interface";
  EXPECT_NE(open_rails(settings, nullptr).error().what.find("tcp (no rail here: "),
            std::string::npos);
}

const TransportState& state_of(const std::vector<TransportState>& states, const char* name) {
  const auto found = std::ranges::find(states, name, &TransportState::name);
  EXPECT_NE(found, states.end()) << name;
  return *found;
}

TEST(Registry, SurveyOfTransports) {
  Settings settings;
  settings.ifname = "=lo";
  settings.transports = "tcp, carrier-pigeon";
  const auto states = survey_transports(settings);
  ASSERT_EQ(states.size(), 4u);
  EXPECT_FALSE(state_of(states, "verbs").wanted);
  EXPECT_EQ(state_of(states, "tcp").rails, std::vector<std::string>{"lo"});
  EXPECT_TRUE(state_of(states, "tcp").wanted && state_of(states, "tcp").exists);
  EXPECT_FALSE(state_of(states, "carrier-pigeon").exists);
  EXPECT_NE(state_of(states, "carrier-pigeon").reason, "");
}

TEST(Registry, SurveySaysWhyThereAreNoRails) {
  Settings settings;
  settings.ifname = "=no-such-interface";
  settings.transports = "tcp";
  const auto none = survey_transports(settings);
  EXPECT_TRUE(state_of(none, "tcp").rails.empty());
  EXPECT_NE(state_of(none, "tcp").reason.find("lo does not match"), std::string::npos);
  settings.ifname = "=lo";
  settings.transports = "auto";
  settings.ib_disable = true;
  const auto without_verbs = survey_transports(settings);
  EXPECT_EQ(state_of(without_verbs, "verbs").reason, "left out by NCCL_SLIME_IB_DISABLE");
  EXPECT_FALSE(state_of(without_verbs, "verbs").wanted);
  EXPECT_TRUE(state_of(without_verbs, "tcp").wanted) << "it is what auto takes";
  settings.transports = "auto,tcp";
  EXPECT_FALSE(state_of(survey_transports(settings), "auto").exists);
}

TEST(Registry, AutoStandsAlone) {
  Settings settings;
  settings.transports = "auto,tcp";
  const auto rails = open_rails(settings, nullptr);
  ASSERT_FALSE(rails);
  EXPECT_NE(rails.error().what.find("stands alone"), std::string::npos) << rails.error().what;
}

TEST(Registry, LoopbackGivesTcpRails) {
  Settings settings;
  settings.ifname = "=lo";
  settings.transports = " tcp ,,tcp";
  std::vector<std::string> notes;
  const auto rails = open_rails(settings, &notes);
  ASSERT_TRUE(rails) << rails.error().what;
  ASSERT_EQ(rails->size(), 1u);
  const RailCaps& caps = (*rails)[0]->caps();
  EXPECT_EQ(caps.name, "lo");
  EXPECT_EQ(caps.transport, "tcp");
  EXPECT_EQ(caps.oob_address, "127.0.0.1");
  EXPECT_FALSE(caps.lines_in_order);
  EXPECT_FALSE(caps.arrives_unpolled);
  EXPECT_TRUE(caps.ordered);
  EXPECT_EQ(caps.memory_kinds, static_cast<uint32_t>(MemoryKind::kHost));
}

TEST(Registry, SeveralRailsPerInterfaceShareItsSpeed) {
  Settings settings;
  settings.ifname = "=lo";
  settings.transports = "tcp";
  const auto one = open_rails(settings, nullptr);
  settings.rails_per_if = 12;
  const auto twelve = open_rails(settings, nullptr);
  ASSERT_TRUE(one && twelve);
  ASSERT_EQ(twelve->size(), 12u);
  for (int i = 0; i < 12; ++i) {
    const RailCaps& caps = (*twelve)[i]->caps();
    EXPECT_EQ(caps.name, "lo." + std::to_string(i)) << "in the order of their numbers";
    EXPECT_EQ(caps.guid, (*one)[0]->caps().guid);
    EXPECT_EQ(caps.port, (*one)[0]->caps().port);
    EXPECT_EQ(caps.speed_mbps, (*one)[0]->caps().speed_mbps / 12);
  }
}

TEST(Registry, NoRailIsNoError) {
  Settings settings;
  settings.ifname = "=no-such-interface";
  std::vector<std::string> notes;
  const auto rails = open_rails(settings, &notes);
  ASSERT_TRUE(rails) << rails.error().what;
  EXPECT_TRUE(rails->empty());
  EXPECT_FALSE(notes.empty()) << "somebody will want to know why";
}

TEST(Registry, DeviceMemoryIsUnsupported) {
  Interface interface;
  interface.name = "lo";
  interface.address = *SocketAddress::parse("127.0.0.1");
  const auto rail = tcp::TcpRail::open(interface, Settings());
  char memory[16];
  const auto keys = rail->register_memory({memory, sizeof(memory), MemoryKind::kCuda});
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().status, Status::kUnsupported);
}

}  // namespace
}  // namespace slime
