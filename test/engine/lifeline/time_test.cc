// A link without rails in virtual time: what counts as silence, and as progress of a request.
#include <gtest/gtest.h>

#include <memory>

#include "settings/times.h"
#include "test/support/sim/lifeline.h"
#include "test/support/sim_hosts.h"
#include "test/support/transfer_end.h"

namespace slime::test {
namespace {

constexpr uint64_t kMs = times::kMillisecond;

class LifelineTime : public ::testing::Test {
 protected:
  // `nic`: it confirms works whether the peer's process polls or not.
  void make(bool nic) {
    for (SimHost* host : {&active_host_, &passive_host_}) {
      RailCaps caps;
      caps.name = host == &active_host_ ? "a.0" : "b.0";
      caps.ordered = true;
      caps.confirms_in_hardware = caps.arrives_unpolled = nic;
      host->rails[0]->configure(caps, {});
    }
    const LinkMemoryBytes memory = TransferEnd::memory_bytes(1);
    SimEnds ends = connect(network_, active_host_, passive_host_, 1, {memory, memory, {}, true});
    ends.active.lifeline_seconds = ends.passive.lifeline_seconds = 20;
    ends.active.lifeline_dialer = std::make_unique<sim::LifelineCaller>(
        network_, random_, sim::LifelineModel(), [this](std::unique_ptr<LifelineStream> stream) {
          ++dialed_;
          passive_->link().take_lifeline(std::move(stream));
        });
    active_ = std::make_unique<TransferEnd>(*active_host_.devices, active_host_.device(),
                                            std::move(ends.active));
    passive_ = std::make_unique<TransferEnd>(*passive_host_.devices, passive_host_.device(),
                                             std::move(ends.passive));
  }

  static Settings settings() {
    Settings settings;
    settings.rail_retry = 1e-3;
    settings.request_timeout = 2;
    return settings;
  }
  void progress() {
    for (TransferEnd* end : {active_.get(), passive_.get()}) {
      ASSERT_EQ(end->progress(), Status::kOk) << end->link().context().failure().what;
    }
  }
  // Ten seconds of virtual time at most, in which both ends are polled once in 10 us.
  template <typename Condition>
  void until(Condition condition) {
    for (int turn = 0; turn < 1'000'000 && !condition() && !HasFatalFailure(); ++turn) {
      while (network_.step()) progress();
      network_.advance(10'000);
      progress();
    }
    ASSERT_TRUE(condition());
  }
  bool up() const { return up_count(*active_) == 1 && up_count(*passive_) == 1; }
  static size_t up_count(TransferEnd& end) { return end.link().rails().up_count(); }
  void kill(sim::Death death = sim::Death::kNoticed) { active_host_.rails[0]->kill(death); }
  // Both ends are polled once a millisecond.
  void pass(uint64_t seconds) {
    for (uint64_t i = 0; i < 1000 * seconds && !HasFatalFailure(); ++i) {
      network_.advance(kMs);
      progress();
    }
  }

  sim::Network network_{1};
  sim::Random random_{1};
  SimHost active_host_{network_, 1, RailCaps(), settings(), "a"};
  SimHost passive_host_{network_, 1, RailCaps(), settings(), "b"};
  std::unique_ptr<TransferEnd> active_, passive_;
  int dialed_ = 0;
};

TEST_F(LifelineTime, WhileAnEndIsStoppedIsNoSilenceOfThePeer) {
  make(false);
  kill();
  until([&] { return dialed_ > 0; });
  for (int i = 0; i < 5; ++i) {
    network_.advance(30 * times::kSecond);  // also longer than the link lives without a rail
    progress();
    progress();
  }
  EXPECT_EQ(dialed_, 1);
}

TEST_F(LifelineTime, ARailThatDiesAndComesBackIsNoProgressOfARequest) {
  make(false);
  const uint64_t started_ns = network_.now_ns();
  uint64_t rejoins = 0;
  while (network_.now_ns() - started_ns < seconds_to_ns(settings().request_timeout)) {
    kill();
    until([&] { return up_count(*active_) == 0; });
    active_host_.rails[0]->revive();
    until([&] { return up(); });
    ++rejoins;
    network_.advance(50 * kMs);
  }
  progress();
  EXPECT_GT(rejoins, 10u);
  EXPECT_EQ(active_->link().check_deadline(started_ns, "the test", 0), Status::kTimeout);
}

// The active end looks from time to time whether the peer still has the rail.
TEST_F(LifelineTime, AnIdleLinkIsProbedOnceInFourRailTimeouts) {
  for (const bool nic : {false, true}) {
    make(nic);
    pass(1);
    const RailCounters& counters = active_->link().rails()[0].channel->counters;
    const auto before = static_cast<double>(counters.works.get());
    pass(60);
    const double most = 60 / (4 * settings().rail_timeout);
    const double probes = static_cast<double>(counters.works.get()) - before;
    EXPECT_LE(probes, most + 1);
    EXPECT_GE(probes, most / 2);
  }
}

TEST_F(LifelineTime, ASilentRailIsGivenUpUnlessItsNicDoesThat) {
  for (const bool nic : {false, true}) {
    make(nic);
    kill(sim::Death::kSilent);
    pass(static_cast<uint64_t>(8 * settings().rail_timeout) + 1);
    EXPECT_EQ(up_count(*active_), nic ? 1u : 0u);
    active_host_.rails[0]->revive();
  }
}

}  // namespace
}  // namespace slime::test
