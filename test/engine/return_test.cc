// A rail that returns beside one with many bytes on the way carries works at once, at both ends:
// the word that an end is connected waits behind those bytes.
#include <gtest/gtest.h>

#include <functional>

#include "test/support/sim_hosts.h"
#include "test/support/transfer_end.h"

namespace slime::test {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kBytes = 4 << 20;  // 335 ms at the rate of a rail

Settings settings_of_returns() {
  Settings settings;
  settings.rail_retry = 0.001;
  settings.rail_timeout = 10;
  return settings;
}

class Return : public testing::Test {
 protected:
  Return() {
    sim::RailModel model;
    model.rate_mbps = 100;
    for (SimHost* host : {&active, &passive}) {
      for (sim::Rail* rail : host->rails) rail->configure(rail->caps(), model);
    }
    const LinkMemoryBytes memory = TransferEnd::memory_bytes(2);
    SimEnds made = connect(network, active, passive, 2, {memory, memory, {}, true});
    ends[0] =
        std::make_unique<TransferEnd>(*active.devices, active.device(), std::move(made.active));
    ends[1] =
        std::make_unique<TransferEnd>(*passive.devices, passive.device(), std::move(made.passive));
    source = *active.device().memory().acquire({from.data(), kBytes});
    target = *passive.device().memory().acquire({to.data(), kBytes});
  }
  ~Return() override {
    for (auto& end : ends) end.reset();
    (void)active.device().memory().release(source);
    (void)passive.device().memory().release(target);
  }

  bool until(const std::function<bool()>& condition, uint64_t ns) {
    const uint64_t end_ns = network.now_ns() + ns;
    while (!condition() && network.now_ns() < end_ns) {
      for (const auto& end : ends) EXPECT_EQ(end->progress(), Status::kOk);
      network.advance(100'000);
    }
    return condition();
  }
  size_t up(size_t end) { return ends[end]->link().rails().up_count(); }

  sim::Network network{3};
  SimHost active{network, 2, RailCaps(), settings_of_returns(), "a"},
      passive{network, 2, RailCaps(), settings_of_returns(), "b"};
  std::vector<std::byte> from = std::vector<std::byte>(kBytes), to = from;
  const MemoryRegion *source = nullptr, *target = nullptr;
  std::array<std::unique_ptr<TransferEnd>, 2> ends;
};

TEST_F(Return, BothEndsUseTheRailAtOnceBesideALongTransfer) {
  active.rails[1]->kill(sim::Death::kNoticed);
  passive.rails[1]->kill(sim::Death::kNoticed);
  ASSERT_TRUE(until([&] { return up(0) == 1 && up(1) == 1; }, 100 * kMs));
  (void)until([] { return false; }, 20 * kMs);  // both know that it has been fenced
  active.rails[1]->revive();
  passive.rails[1]->revive();
  const LinkRail& returning = ends[1]->link().rails()[1];
  ASSERT_TRUE(until([&] { return returning.life.state() == RailState::kJoining; }, 1000 * kMs));
  ends[0]->send(0, from.data(), source, kBytes, target, to.data());
  ASSERT_TRUE(until([&] { return up(0) == 2; }, 1000 * kMs));
  EXPECT_TRUE(until([&] { return up(1) == 2; }, 10 * kMs));
  EXPECT_FALSE(ends[0]->sent(0));
}

}  // namespace
}  // namespace slime::test
