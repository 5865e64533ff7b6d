// Endpoints of closed channels that a peer may still touch.
#include "transports/fabric/rail.h"

#include <deque>

#include "test/fabric/support.h"
#include "test/fuzz/support/fuzz_rail.h"

namespace slime::fabric {
namespace {

struct Closing {
  TestNics host{{.ep_cnt = ClosingEndpoints::kCapacity + 2}};
  std::deque<fuzz::Wire> peers;
  ClosingEndpoints closing;

  void add() {
    auto endpoint = Endpoint::open(static_cast<FabricRail&>(*host.left).domain(),
                                   {.completions = SideConnection::kMaxWords});
    ASSERT_TRUE(endpoint) << endpoint.error().what;
    peers.emplace_back();
    closing.add({std::move(*endpoint), std::make_unique<SideConnection>(
                                           std::make_unique<fuzz::FuzzChannel>(peers.back()))});
  }
  void say(size_t peer, SideMessage message) {
    const uint32_t head = 0x6c00'0000 | static_cast<uint32_t>(message) << 16;
    peers[peer].arrivals.push_back({.kind = Done::Kind::kArrived, .immediate = head});
  }
};

TEST(FabricClosing, AnEndpointStaysUntilThePeerHasSaidThatItIsDone) {
  Closing world;
  world.add();
  world.add();
  const size_t objects = world.host.nics.objects();
  world.say(0, SideMessage::kReady);
  world.closing.poll();
  EXPECT_EQ(world.closing.size(), 2u);
  world.say(0, SideMessage::kEnd);
  world.closing.poll();
  EXPECT_EQ(world.closing.size(), 1u);
  EXPECT_EQ(world.host.nics.objects(), objects - 3) << "with its queue and address vector";
}

TEST(FabricClosing, AnEndpointStaysUntilThePeerHasEnded) {
  Closing world;
  world.add();
  world.peers[0].dead = true;
  world.closing.poll();
  EXPECT_EQ(world.closing.size(), 0u);
}

TEST(FabricClosing, ASideConnectionAloneStaysUntilAllIsSent) {
  Closing world;
  world.peers.emplace_back();
  auto side_connection =
      std::make_unique<SideConnection>(std::make_unique<fuzz::FuzzChannel>(world.peers.back()));
  world.closing.add({{}, std::move(side_connection)});
  world.closing.poll();
  EXPECT_EQ(world.closing.size(), 0u);
}

TEST(FabricClosing, APeerThatSaysNonsenseIsNotWaitedFor) {
  Closing world;
  world.add();
  world.peers[0].arrivals.push_back({.kind = Done::Kind::kArrived, .immediate = 1});
  world.closing.poll();
  world.closing.poll();
  EXPECT_EQ(world.closing.size(), 0u);
}

TEST(FabricClosing, WhenItIsFullTheOldestEnds) {
  Closing world;
  for (size_t i = 0; i < ClosingEndpoints::kCapacity; ++i) world.add();
  const size_t objects = world.host.nics.objects();
  world.add();
  EXPECT_EQ(world.closing.size(), ClosingEndpoints::kCapacity);
  EXPECT_EQ(world.host.nics.objects(), objects);
  world.say(0, SideMessage::kEnd);
  world.closing.poll();
  EXPECT_EQ(world.closing.size(), ClosingEndpoints::kCapacity) << "it was the first that ended";
}

}  // namespace
}  // namespace slime::fabric
