// Which silence of a rail means that it is dead: in virtual time, over rails whose works are
// confirmed by the peer's process (as tcp) or by its NIC (as RDMA).
#include <gtest/gtest.h>

#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

constexpr size_t kBytes = 256 << 10;
constexpr uint64_t kStepNs = 10'000;

Settings settings_of_silence() {
  Settings settings;
  settings.min_stripe = 4096;
  settings.rail_timeout = 0.01;
  settings.rail_retry = 0;
  return settings;
}

RailCaps caps_of(bool confirms_in_hardware) {
  RailCaps caps;
  caps.transport = "sim";
  caps.arrives_unpolled = confirms_in_hardware;
  caps.confirms_in_hardware = confirms_in_hardware;
  return caps;
}

// A message on its way over two rails.
class Silence : public ::testing::TestWithParam<bool> {
 protected:
  Silence() {
    source_region_ = *from_.device().memory().acquire({source_.data(), kBytes});
    target_region_ = *to_.device().memory().acquire({target_.data(), kBytes});
    link_ = connect(network_, from_, to_, 2, 0);
  }
  ~Silence() override { link_ = {}; }

  void begin_message() {
    const Receive wanted{target_.data(), kBytes, 0, target_region_};
    EXPECT_EQ(link_.receiver->irecv({&wanted, 1}, false, &receive_), Status::kOk);
    for (int i = 0; i < 1000 && send_ == nullptr; ++i) {
      step(true);
      EXPECT_EQ(link_.sender->isend(source_.data(), kBytes, 0, source_region_, &send_),
                Status::kOk);
    }
    ASSERT_NE(send_, nullptr);
  }
  void step(bool peer_runs) {
    EXPECT_EQ(link_.sender->progress(), Status::kOk) << link_.sender->failure().what;
    if (peer_runs) {
      EXPECT_EQ(link_.receiver->progress(), Status::kOk) << link_.receiver->failure().what;
    }
    network_.advance(kStepNs);
  }
  void run(double seconds, bool peer_runs) {
    for (uint64_t left = seconds_to_ns(seconds); left > kStepNs; left -= kStepNs) step(peer_runs);
  }
  uint64_t works_of_sender() {
    return from_.rails[0]->works_posted() + from_.rails[1]->works_posted();
  }

  sim::Network network_{1};
  SimHost from_{network_, 2, caps_of(GetParam()), settings_of_silence(), "a"};
  SimHost to_{network_, 2, caps_of(GetParam()), settings_of_silence(), "b"};
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes, std::byte{7});
  std::vector<std::byte> target_ = std::vector<std::byte>(kBytes);
  const MemoryRegion *source_region_ = nullptr, *target_region_ = nullptr;
  SimLink link_;
  Request *send_ = nullptr, *receive_ = nullptr;
};

TEST_P(Silence, ARailIsDeadWhereThePeerAnswersOnAnother) {
  ASSERT_NO_FATAL_FAILURE(begin_message());
  from_.rails[0]->kill(sim::Death::kSilent);
  run(0.05, true);
  EXPECT_EQ(link_.sender->link().up_count(), 1u);
  bool sent = false, received = false;
  EXPECT_EQ(link_.sender->test(send_, &sent, nullptr), Status::kOk);
  EXPECT_EQ(link_.receiver->test(receive_, &received, nullptr), Status::kOk);
  EXPECT_TRUE(sent && received);
  EXPECT_EQ(source_, target_);
}

// Its NIC goes on confirming on the other rail, if it does so by itself.
TEST_P(Silence, NothingIsDeadWhileThePeerIsStopped) {
  ASSERT_NO_FATAL_FAILURE(begin_message());
  from_.rails[0]->kill(sim::Death::kSilent);
  run(0.005, false);
  const uint64_t before = works_of_sender();
  run(1, false);
  EXPECT_EQ(link_.sender->link().up_count(), 2u);
  EXPECT_LT(works_of_sender() - before, 2 * 110u) << "one probe a rail and time-out, at most";
  run(0.05, true);
  EXPECT_EQ(link_.sender->link().up_count(), 1u) << "the peer runs again, and answers";
  EXPECT_EQ(source_, target_);
}

INSTANTIATE_TEST_SUITE_P(ConfirmedBy, Silence, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Nic" : "Process"; });

}  // namespace
}  // namespace slime::test
