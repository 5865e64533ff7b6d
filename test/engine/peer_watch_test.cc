// What a waiting end learns of its peer's process, in virtual time: whether it computes, is
// stopped, or has ended although its host still acknowledges.
#include <gtest/gtest.h>

#include "test/support/kept_warnings.h"
#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

constexpr uint64_t kStepNs = 10'000;
constexpr double kWarn = 0.02, kEnd = 0.2;

Settings short_times() {
  Settings settings;
  settings.rail_timeout = kWarn / 4;
  settings.peer_timeout = kWarn;
  settings.answer_timeout = kEnd;
  return settings;
}

RailCaps caps_of(bool confirms_in_hardware) {
  RailCaps caps;
  caps.transport = "sim";
  caps.confirms_in_hardware = confirms_in_hardware;
  return caps;
}

// A receiver with an open receive, whose sender is moved by the test only.
class PeerWatching : public ::testing::TestWithParam<bool> {
 protected:
  explicit PeerWatching(size_t rails = 2)
      : from_(network_, rails, caps_of(GetParam()), short_times(), "a"),
        to_(network_, rails, caps_of(GetParam()), short_times(), "b") {
    link_ = connect(network_, from_, to_, static_cast<uint32_t>(rails), 1024);
    const Receive wanted{memory_.data(), memory_.size(), 0,
                         *to_.device().memory().acquire({memory_.data(), memory_.size()})};
    EXPECT_EQ(link_.receiver->irecv({&wanted, 1}, false, &receive_), Status::kOk);
  }

  // Until the receive ends; at most for so long.
  Status wait(double seconds, bool sender_runs) {
    for (uint64_t left = seconds_to_ns(seconds); left > kStepNs; left -= kStepNs) {
      const Status status = link_.receiver->test(receive_, &done_, nullptr);
      if (status != Status::kOk || done_) return status;
      if (sender_runs) {
        EXPECT_EQ(link_.sender->progress(), Status::kOk);
      }
      network_.advance(kStepNs);
    }
    return Status::kOk;
  }

  KeptWarnings warnings_{"has not answered"};
  sim::Network network_{1};
  SimHost from_, to_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(64);
  SimLink link_;
  Request* receive_ = nullptr;
  bool done_ = false;
};

TEST_P(PeerWatching, AProcessThatComputesAnswers) {
  EXPECT_EQ(wait(5 * kEnd, true), Status::kOk) << link_.receiver->failure().what;
  EXPECT_TRUE(warnings_.lines().empty());
  const uint64_t works = to_.rails[0]->works_posted() + to_.rails[1]->works_posted();
  EXPECT_LT(works, 20 + 4 * 5 * kEnd / kWarn) << "a question each quarter of the peer time-out";
}

TEST_P(PeerWatching, AStoppedProcessGoesOnAfterOneWarning) {
  EXPECT_EQ(wait(0.9 * kWarn, false), Status::kOk);
  EXPECT_TRUE(warnings_.lines().empty());
  EXPECT_EQ(wait(kEnd / 2, false), Status::kOk) << link_.receiver->failure().what;
  ASSERT_EQ(warnings_.lines().size(), 1u);
  EXPECT_NE(warnings_.lines()[0].find("peer sender"), std::string::npos);
  Request* send = nullptr;
  const MemoryRegion* region = *from_.device().memory().acquire({memory_.data(), memory_.size()});
  EXPECT_EQ(link_.sender->isend(memory_.data(), 8, 0, region, &send), Status::kOk);
  EXPECT_EQ(wait(kEnd, true), Status::kOk) << link_.receiver->failure().what;
  EXPECT_TRUE(done_);
  EXPECT_EQ(warnings_.lines().size(), 1u);
}

TEST_P(PeerWatching, AProcessThatNeverAnswersIsATimeOutThatNamesIt) {
  EXPECT_EQ(wait(2 * kEnd, false), Status::kTimeout);
  const std::string& why = link_.receiver->failure().what;
  EXPECT_NE(why.find("peer sender"), std::string::npos) << why;
  EXPECT_NE(why.find("NCCL_SLIME_ANSWER_TIMEOUT"), std::string::npos) << why;
}

// Its peer answers only in its own calls, so nothing is asked.
class PeerOfOneRail : public PeerWatching {
 protected:
  PeerOfOneRail() : PeerWatching(1) {}
};

TEST_P(PeerOfOneRail, IsNotAsked) {
  EXPECT_EQ(wait(2 * kEnd, false), Status::kOk) << link_.receiver->failure().what;
  EXPECT_TRUE(warnings_.lines().empty());
}

const auto kName = [](const auto& info) { return info.param ? "ConfirmedByNic" : "ByProcess"; };
INSTANTIATE_TEST_SUITE_P(Rails, PeerWatching, testing::Bool(), kName);
INSTANTIATE_TEST_SUITE_P(Rails, PeerOfOneRail, testing::Bool(), kName);

}  // namespace
}  // namespace slime::test
