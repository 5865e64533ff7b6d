// What a completion tells: in virtual time, over rails whose works are confirmed by the peer's
// process (as tcp) or by its NIC (as RDMA).
#include <gtest/gtest.h>

#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

constexpr size_t kStripe = 4096;
constexpr size_t kBytes = kMaxStripes * kStripe;
constexpr uint64_t kStepNs = 10'000;

Settings small_stripes() {
  Settings settings;
  settings.min_stripe = kStripe;
  settings.rail_timeout = 0.01;
  settings.rail_retry = 0.001;
  return settings;
}

RailCaps caps_of(bool confirms_in_hardware) {
  RailCaps caps;
  caps.transport = "sim";
  caps.arrives_unpolled = confirms_in_hardware;
  caps.confirms_in_hardware = confirms_in_hardware;
  return caps;
}

// A link of two rails, and the buffers of a message.
struct TwoRails {
  explicit TwoRails(bool by_nic)
      : from(network, 2, caps_of(by_nic), small_stripes(), "a"),
        to(network, 2, caps_of(by_nic), small_stripes(), "b"),
        source(kBytes, std::byte{7}),
        target(kBytes) {
    source_region = *from.device().memory().acquire({source.data(), source.size()});
    target_region = *to.device().memory().acquire({target.data(), target.size()});
    link = connect(network, from, to, 2, 0);
  }

  void begin_message() {
    const Receive wanted{target.data(), kBytes, 0, target_region};
    EXPECT_EQ(link.receiver->irecv({&wanted, 1}, false, &receive), Status::kOk);
    for (int i = 0; i < 1000 && send == nullptr; ++i) {
      step(true);
      EXPECT_EQ(link.sender->isend(source.data(), kBytes, 0, source_region, &send), Status::kOk);
    }
    ASSERT_NE(send, nullptr);
  }
  void step(bool receiver_runs) {
    EXPECT_EQ(link.sender->progress(), Status::kOk) << link.sender->failure().what;
    if (receiver_runs) {
      EXPECT_EQ(link.receiver->progress(), Status::kOk) << link.receiver->failure().what;
    }
    network.advance(kStepNs);
  }
  void run(double seconds, bool receiver_runs) {
    for (uint64_t left = seconds_to_ns(seconds); left > kStepNs; left -= kStepNs) {
      step(receiver_runs);
    }
  }
  // Whatever has become of the link.
  bool done(Comm& comm, Request** request) {
    bool is_done = *request == nullptr;
    if (!is_done) (void)comm.test(*request, &is_done, nullptr);
    if (is_done) *request = nullptr;
    return is_done;
  }
  uint64_t works_of_sender() const {
    return from.rails[0]->works_posted() + from.rails[1]->works_posted();
  }

  sim::Network network{1};
  SimHost from, to;
  std::vector<std::byte> source, target;
  const MemoryRegion *source_region = nullptr, *target_region = nullptr;
  SimLink link;
  Request *send = nullptr, *receive = nullptr;
};

class Confirmation : public ::testing::TestWithParam<bool> {};

TEST_P(Confirmation, ARailIsDeadWhereThePeerAnswersOnAnother) {
  TwoRails rails(GetParam());
  ASSERT_NO_FATAL_FAILURE(rails.begin_message());
  rails.from.rails[0]->kill(sim::Death::kSilent);
  rails.run(0.05, true);
  EXPECT_EQ(rails.link.sender->link().rails().up_count(), 1u);
  EXPECT_TRUE(rails.done(*rails.link.sender, &rails.send));
  EXPECT_TRUE(rails.done(*rails.link.receiver, &rails.receive));
  EXPECT_TRUE(
      std::equal(rails.target.begin(), rails.target.begin() + kBytes, rails.source.begin()));
}

// Its NIC goes on confirming on the other rail, if it does so by itself.
TEST_P(Confirmation, NothingIsDeadWhileThePeerIsStopped) {
  TwoRails rails(GetParam());
  ASSERT_NO_FATAL_FAILURE(rails.begin_message());
  rails.from.rails[0]->kill(sim::Death::kSilent);
  rails.run(0.005, false);
  const uint64_t before = rails.works_of_sender();
  rails.run(1, false);
  EXPECT_EQ(rails.link.sender->link().rails().up_count(), 2u);
  EXPECT_LT(rails.works_of_sender() - before, 2 * 110u) << "one probe a rail and time-out";
  rails.run(0.05, true);
  EXPECT_EQ(rails.link.sender->link().rails().up_count(), 1u) << "the peer runs again, and answers";
}

// Many small messages, in grouped receives.
struct SmallMessages {
  static constexpr size_t kGroups = kMaxRequests, kSmall = 128;

  explicit SmallMessages(TwoRails& rails) : rails_(rails) {
    for (size_t group = 0; group < kGroups; ++group) {
      std::array<Receive, kMaxReceives> parts;
      for (size_t i = 0; i < parts.size(); ++i) {
        std::byte* const place = &rails.target[(group * parts.size() + i) * kSmall];
        parts[i] = {place, kSmall, 0, rails.target_region};
      }
      EXPECT_EQ(rails.link.receiver->irecv(parts, false, &groups_[group]), Status::kOk);
    }
  }
  void send(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Request* request = nullptr;
      EXPECT_EQ(rails_.link.sender->isend(&rails_.source[i * kSmall], kSmall, 0,
                                          rails_.source_region, &request),
                Status::kOk);
      ASSERT_NE(request, nullptr);
      sends_.push_back(request);
    }
  }
  size_t left() {
    std::erase_if(sends_, [&](Request*& send) { return rails_.done(*rails_.link.sender, &send); });
    return sends_.size();
  }
  size_t groups_done() {
    return static_cast<size_t>(std::ranges::count_if(
        groups_, [&](Request*& group) { return rails_.done(*rails_.link.receiver, &group); }));
  }

 private:
  TwoRails& rails_;
  std::array<Request*, kGroups> groups_ = {};
  std::vector<Request*> sends_;
};

// The sender uses a rail as soon as both ends are connected. The receiver has not read that yet
// when the sender has sent all and is gone. One poll may return both the arrivals and the failure,
// or two polls may: that depends on how much else has come.
void expect_what_was_sent(size_t messages, uint64_t* on_joining_rail) {
  TwoRails rails(true);
  Link const &sender = rails.link.sender->link(), &receiver = rails.link.receiver->link();
  rails.from.rails[0]->kill(sim::Death::kNoticed);
  for (int i = 0; i < 1000 && receiver.rails().up_count() == 2; ++i) rails.step(true);
  SmallMessages small(rails);
  for (int i = 0; i < 20; ++i) rails.step(true);
  ASSERT_EQ(sender.rails().up_count(), 1u);
  rails.from.rails[0]->revive();
  for (int i = 0; i < 10'000 && sender.rails().up_count() == 1; ++i) {
    EXPECT_EQ(rails.link.receiver->progress(), Status::kOk);
    rails.network.advance(kStepNs);
    EXPECT_EQ(rails.link.sender->progress(), Status::kOk);
  }
  ASSERT_EQ(sender.rails().up_count(), 2u);
  const uint64_t before = rails.from.rails[0]->works_posted();
  small.send(messages);
  for (int i = 0; i < 100; ++i) rails.step(false);  // no test: it would move the receiver too
  EXPECT_EQ(small.left(), 0u) << "its NIC confirms what the peer has not read";
  *on_joining_rail += rails.from.rails[0]->works_posted() - before;
  ASSERT_EQ(receiver.rails().up_count(), 1u);
  rails.link.sender.reset();
  rails.network.advance(100 * kStepNs);
  for (int i = 0; i < 100; ++i) (void)small.groups_done();
  EXPECT_EQ(small.groups_done(), messages / kMaxReceives) << messages << " messages";
}

TEST(ConfirmedByNic, WhatCameOverARailThatIsJoiningIsReceived) {
  uint64_t works = 0;
  for (size_t messages = 100; messages <= SmallMessages::kGroups * kMaxReceives; ++messages) {
    ASSERT_NO_FATAL_FAILURE(expect_what_was_sent(messages, &works));
  }
  EXPECT_GT(works, 500u) << "the joining rail carried little";
}

INSTANTIATE_TEST_SUITE_P(By, Confirmation, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Nic" : "Process"; });

}  // namespace
}  // namespace slime::test
