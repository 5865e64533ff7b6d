// While small messages come one after the other, the receiver sends no CTS: counted in works and in
// virtual time. What the first large message after them loses is bounded.
#include <gtest/gtest.h>

#include <thread>

#include "test/support/load/engine_pair.h"
#include "test/support/sim_hosts.h"

namespace slime {
namespace {

constexpr uint32_t kEagerMax = 4096;
constexpr size_t kSmall = 8, kLarge = 64 << 10;
constexpr uint64_t kGlanceNs = 1'000;  // between two calls of a caller

class HoldBack : public ::testing::Test {
 protected:
  static RailCaps caps() {
    RailCaps caps;
    caps.transport = "test";
    caps.speed_mbps = 100'000;
    return caps;
  }
  uint64_t works_of_receiver() const { return test::sum_counters(pair_.recv_channels).works; }
  uint64_t works_of_sender() const { return test::sum_counters(pair_.send_channels).works; }

  void post() {
    const Receive receive{target_.data(), kLarge, 0, target_.region()};
    ASSERT_EQ(pair_.receiver->irecv({&receive, 1}, false, &receive_), Status::kOk);
    ASSERT_NE(receive_, nullptr);
  }
  // The receiver's caller looks, and time passes.
  bool glance() {
    network_.advance(kGlanceNs);
    bool done = false;
    EXPECT_EQ(pair_.receiver->test(receive_, &done, nullptr), Status::kOk);
    return done;
  }
  void idle(uint64_t ns) {
    for (const uint64_t end = network_.now_ns() + ns; network_.now_ns() < end;) {
      ASSERT_FALSE(glance());
    }
  }
  // From the first isend until the receive is done. The sender's caller calls as often.
  uint64_t pass_ns(size_t bytes) {
    const uint64_t started_ns = network_.now_ns();
    Request* request = nullptr;
    bool sent = false, received = false;
    for (int i = 0; i < 100'000 && !(sent && received); ++i) {
      if (request == nullptr) {
        EXPECT_EQ(pair_.sender->isend(source_.data(), bytes, 0, source_.region(), &request),
                  Status::kOk);
      } else if (!sent) {
        EXPECT_EQ(pair_.sender->test(request, &sent, nullptr), Status::kOk);
      }
      received = received || glance();
    }
    EXPECT_TRUE(sent && received);
    return network_.now_ns() - started_ns;
  }
  void exchange(int messages, uint64_t pause_ns, size_t bytes = kSmall) {
    for (int i = 0; i < messages; ++i) {
      post();
      idle(pause_ns);
      pass_ns(bytes);
    }
  }

  sim::Network network_{1};
  test::SimHost from_{network_, 1, caps(), Settings(), "a"};
  test::SimHost to_{network_, 1, caps(), Settings(), "b"};
  RegisteredBuffer source_ = test::value_of(RegisteredBuffer::make(from_.device(), kLarge));
  RegisteredBuffer target_ = test::value_of(RegisteredBuffer::make(to_.device(), kLarge));
  test::EnginePair pair_ = test::connect_engines(*from_.devices, *to_.devices, 1, kEagerMax,
                                                 [this] { network_.advance(1000); });
  Request* receive_ = nullptr;
};

// Between two allreduces of 8 bytes a kernel is started: a receive waits longer than the message
// takes.
TEST_F(HoldBack, SteadySmallMessagesNeedNoCts) {
  exchange(32, 0);
  const uint64_t before = works_of_receiver();
  exchange(96, 200'000);
  EXPECT_LE(works_of_receiver() - before, 96 / kEagerBuffers * 2) << "more than reports of credits";
}

TEST_F(HoldBack, TheFirstLargeMessageAsksForItsCts) {
  exchange(1, 0, kLarge);
  post();
  idle(200'000);  // its CTS has come
  const uint64_t announced_ns = pass_ns(kLarge);
  for (const uint64_t pause_ns : {uint64_t{0}, uint64_t{200'000}}) {
    exchange(32, 0);
    post();
    idle(pause_ns);
    EXPECT_LE(pass_ns(kLarge), announced_ns + 20'000) << "after a pause of " << pause_ns << " ns";
  }
}

TEST_F(HoldBack, AfterALongPauseTheCtsIsThere) {
  exchange(32, 0);
  post();
  const uint64_t before = works_of_receiver();
  idle(2'000'000);
  EXPECT_EQ(works_of_receiver() - before, 1u);
  const uint64_t sent_before = works_of_sender();
  pass_ns(kLarge);
  EXPECT_EQ(works_of_sender() - sent_before, 1u) << "it had nothing to ask for";
}

// The receiver's next call comes only when the message is there.
TEST_F(HoldBack, AfterALongPauseTheCtsLeavesWithTheReceive) {
  exchange(32, 0);
  network_.advance(2'000'000);  // no call at either end
  // In a thread of its own: a sender that waits moves the other comms of its thread.
  std::thread([this] { post(); }).join();
  Request* request = nullptr;
  for (int i = 0; i < 1'000 && request == nullptr; ++i) {
    network_.advance(kGlanceNs);
    ASSERT_EQ(pair_.sender->isend(source_.data(), kLarge, 0, source_.region(), &request),
              Status::kOk);
  }
  EXPECT_NE(request, nullptr);
}

TEST_F(HoldBack, LargeMessagesAskForNothing) {
  exchange(32, 0);
  exchange(1, 0, kLarge);
  const uint64_t before = works_of_sender();
  for (int i = 0; i < 16; ++i) {  // the sender comes first, and waits
    Request* request = nullptr;
    for (int call = 0; call < 50; ++call) {
      ASSERT_EQ(pair_.sender->isend(source_.data(), kLarge, 0, source_.region(), &request),
                Status::kOk);
      ASSERT_EQ(request, nullptr);
      network_.advance(kGlanceNs);
    }
    exchange(1, 0, kLarge);
  }
  EXPECT_EQ(works_of_sender() - before, 16u);
}

}  // namespace
}  // namespace slime
