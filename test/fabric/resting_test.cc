// Endpoints of closed channels that a peer may still touch.
#include "transports/fabric/resting.h"

#include <deque>

#include "test/fabric/support.h"
#include "test/fuzz/support/fuzz_rail.h"

namespace slime::fabric {
namespace {

struct Rested {
  TestNics world{{.ep_cnt = Resting::kCapacity + 2}};
  std::deque<fuzz::Wire> peers;
  Resting resting;

  void add() {
    auto endpoint = Endpoint::open(static_cast<FabricRail&>(*world.left).domain(),
                                   {.completions = Lifeline::kMaxWords});
    ASSERT_TRUE(endpoint) << endpoint.error().what;
    peers.emplace_back();
    resting.add(std::move(*endpoint),
                std::make_unique<Lifeline>(std::make_unique<fuzz::FuzzChannel>(peers.back())));
  }
  void say(size_t peer, LifelineMessage message) {
    const uint32_t head = 0x6c00'0000 | static_cast<uint32_t>(message) << 16;
    peers[peer].arrivals.push_back({.kind = Done::Kind::kArrived, .immediate = head});
  }
};

TEST(FabricResting, AnEndpointRestsUntilThePeerHasSaidThatItIsDone) {
  Rested rested;
  rested.add();
  rested.add();
  const size_t objects = rested.world.nics.objects();
  rested.say(0, LifelineMessage::kReady);
  rested.resting.poll();
  EXPECT_EQ(rested.resting.size(), 2u);
  rested.say(0, LifelineMessage::kEnd);
  rested.resting.poll();
  EXPECT_EQ(rested.resting.size(), 1u);
  EXPECT_EQ(rested.world.nics.objects(), objects - 3) << "with its queue and address vector";
}

TEST(FabricResting, AnEndpointRestsUntilThePeerHasEnded) {
  Rested rested;
  rested.add();
  rested.peers[0].dead = true;
  rested.resting.poll();
  EXPECT_EQ(rested.resting.size(), 0u);
}

TEST(FabricResting, ALifelineAloneRestsUntilAllIsSent) {
  Rested rested;
  rested.peers.emplace_back();
  auto lifeline =
      std::make_unique<Lifeline>(std::make_unique<fuzz::FuzzChannel>(rested.peers.back()));
  rested.resting.add({}, std::move(lifeline));
  rested.resting.poll();
  EXPECT_EQ(rested.resting.size(), 0u);
}

TEST(FabricResting, APeerThatSaysNonsenseIsNotWaitedFor) {
  Rested rested;
  rested.add();
  rested.peers[0].arrivals.push_back({.kind = Done::Kind::kArrived, .immediate = 1});
  rested.resting.poll();
  rested.resting.poll();
  EXPECT_EQ(rested.resting.size(), 0u);
}

TEST(FabricResting, WhenItIsFullTheOldestEnds) {
  Rested rested;
  for (size_t i = 0; i < Resting::kCapacity; ++i) rested.add();
  const size_t objects = rested.world.nics.objects();
  rested.add();
  EXPECT_EQ(rested.resting.size(), Resting::kCapacity);
  EXPECT_EQ(rested.world.nics.objects(), objects);
  rested.say(0, LifelineMessage::kEnd);
  rested.resting.poll();
  EXPECT_EQ(rested.resting.size(), Resting::kCapacity) << "it was the first that ended";
}

}  // namespace
}  // namespace slime::fabric
