// The links of a process over the same rails, before any of them has measured a rate.
#include <gtest/gtest.h>

#include <array>

#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

constexpr size_t kMessage = 16 << 10;  // not cut, and not enough to measure a rate by
constexpr size_t kLinks = 8;
constexpr uint64_t kStepNs = 2000;

class LinksTogether : public testing::Test {
 protected:
  LinksTogether()
      : from_(network_, 2, caps(), Settings(), "a"), to_(network_, 2, caps(), Settings(), "b") {
    network_.check_sources(false);
    sim::RailModel model;
    model.rate_mbps = 500;
    for (size_t i = 0; i < 2; ++i) {
      from_.rails[i]->configure(from_.rails[i]->caps(), model);
      to_.rails[i]->configure(to_.rails[i]->caps(), model);
    }
    from_region_ = *from_.device().memory().acquire({source_.data(), kMessage});
    to_region_ = *to_.device().memory().acquire({target_.data(), kMessage});
    for (Stream& stream : streams_) {
      stream.link = connect(network_, from_, to_, 2, 4096);
      stream.back = connect(network_, to_, from_, 2, 4096);
    }
  }
  static RailCaps caps() {
    RailCaps caps;
    caps.speed_mbps = 500;
    return caps;
  }

  struct Stream {
    SimLink link;
    SimLink back;  // idle; a ring has one to each neighbour
    Request *send = nullptr, *receive = nullptr;
  };
  void begin(Stream& stream) {
    const Receive receive{target_.data(), kMessage, 0, to_region_};
    ASSERT_EQ(stream.link.receiver->irecv({&receive, 1}, false, &stream.receive), Status::kOk);
    ASSERT_NE(stream.receive, nullptr);
  }
  // False: its message is through.
  bool move(Stream& stream) {
    bool done = false;
    if (stream.receive != nullptr) {
      EXPECT_EQ(stream.link.receiver->test(stream.receive, &done, nullptr), Status::kOk);
      if (done) stream.receive = nullptr;
    }
    if (stream.send != nullptr) {
      EXPECT_EQ(stream.link.sender->test(stream.send, &done, nullptr), Status::kOk);
      if (!done) return true;
      stream.send = nullptr;
      return stream.receive != nullptr;
    }
    if (stream.receive != nullptr) {
      EXPECT_EQ(stream.link.sender->isend(source_.data(), kMessage, 0, from_region_, &stream.send),
                Status::kOk);
    }
    return stream.receive != nullptr;
  }
  // A message over each link; all wait for the last, as in a collective. Nanoseconds.
  uint64_t step() {
    const uint64_t start_ns = network_.now_ns();
    for (Stream& stream : streams_) begin(stream);
    for (bool moving = true; moving;) {
      moving = false;
      for (Stream& stream : streams_) moving |= move(stream);
      network_.advance(kStepNs);
    }
    return network_.now_ns() - start_ns;
  }

  sim::Network network_{1};
  SimHost from_, to_;
  std::array<std::byte, kMessage> source_ = {}, target_ = {};
  const MemoryRegion *from_region_ = nullptr, *to_region_ = nullptr;
  std::array<Stream, kLinks> streams_;
};

// With 5 messages on one rail and 3 on the other, a step takes a quarter longer.
TEST_F(LinksTogether, TakeEqualPartsOfEqualRails) {
  for (int i = 0; i < 10; ++i) step();
  constexpr int kSteps = 100;
  uint64_t sum_ns = 0;
  for (int i = 0; i < kSteps; ++i) sum_ns += step();
  constexpr double kBestNs = kLinks * kMessage * 8 / 1.0;  // 1000 Mbit/s are a bit per nanosecond
  EXPECT_LE(static_cast<double>(sum_ns) / kSteps / kBestNs, 1.1);
  for (size_t i = 0; i < kLinks; ++i) {
    const LinkRails& rails = streams_[i].link.sender->link().rails();
    for (size_t rail = 0; rail < rails.count(); ++rail) {
      EXPECT_FALSE(rails[rail].rate.measured()) << "the test is about links that have not measured";
    }
  }
}

TEST_F(LinksTogether, LeaveNothingBehind) {
  for (Stream& stream : streams_) begin(stream);
  for (int i = 0; i < 20; ++i) {
    for (Stream& stream : streams_) move(stream);
    network_.advance(kStepNs);
  }
  EXPECT_GT(from_.device().outstanding(0) + from_.device().outstanding(1), 0u);
  for (Stream& stream : streams_) stream = {};
  for (size_t rail = 0; rail < 2; ++rail) {
    EXPECT_EQ(from_.device().outstanding(rail), 0u);
    EXPECT_EQ(to_.device().outstanding(rail), 0u);
  }
}

}  // namespace
}  // namespace slime::test
