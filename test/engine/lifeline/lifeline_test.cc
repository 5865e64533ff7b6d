// The connection beside the rails of a link: what is sent again, what a peer may not say, and when
// the link fails.
#include "link/lifeline/lifeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "settings/times.h"
#include "test/support/link_parts_fixture.h"

namespace slime::test {
namespace {

constexpr uint64_t kSecond = times::kSecond;

struct Frame {
  LifelineHeader header;
  std::vector<std::byte> payload;
};

// What the test says as the peer, and what it got.
struct Peer {
  std::deque<Frame> says;
  std::vector<Frame> got;
  bool broken = false;
  bool answers = true;  // when it is dialed
  bool forgot = false;
  int dialed = 0, stopped = 0;
};

class PeerStream final : public LifelineStream {
 public:
  explicit PeerStream(Peer& peer) : peer_(peer) {}
  void send(const LifelineHeader& header, std::span<const std::byte> payload) override {
    peer_.got.push_back({header, {payload.begin(), payload.end()}});
  }
  Status receive(LifelineHeader* header, std::span<const std::byte>* payload,
                 Error* error) override {
    if (peer_.broken) *error = make_error(Status::kRemote, 0, "the test broke it");
    if (peer_.broken) return Status::kRemote;
    if (peer_.says.empty()) return Status::kAgain;
    last_ = peer_.says.front();
    peer_.says.pop_front();
    *header = last_.header;
    *payload = last_.payload;
    return Status::kOk;
  }

 private:
  Peer& peer_;
  Frame last_;
};

class PeerDialer final : public LifelineDialer {
 public:
  explicit PeerDialer(Peer& peer) : peer_(peer) {}
  Status dial(std::unique_ptr<LifelineStream>* stream, Error* error) override {
    ++peer_.dialed;
    if (peer_.forgot) *error = make_error(Status::kRemote, 0, "the test forgot the link");
    if (peer_.forgot) return Status::kRemote;
    if (!peer_.answers) return Status::kAgain;
    *stream = std::make_unique<PeerStream>(peer_);
    return Status::kOk;
  }
  void stop() override { ++peer_.stopped; }
  std::string last_failure() const override { return "nobody listens"; }

 private:
  Peer& peer_;
};

class LifelineTest : public LinkPartsTest {
 protected:
  struct Owner final : WorkOwner {
    void on_done(uint32_t part) override { done.push_back(part); }
    void on_lost(uint32_t part) override { lost.push_back(part); }
    std::vector<uint32_t> done, lost;
  };

  Status progress() { return life_.progress(clock_.now_ns()); }
  void open() {
    life_.begin_need(clock_.now_ns());
    EXPECT_EQ(progress(), Status::kOk);
    ASSERT_TRUE(life_.open());
  }
  void send(uint32_t part) { life_.send({ControlOp::kRetry, part, &owner_, part}); }
  void peer_says(LifelineHeader header, size_t bytes = 0) {
    header.bytes = static_cast<uint16_t>(bytes);
    peer_.says.push_back({header, std::vector<std::byte>(bytes, std::byte{7})});
  }
  static constexpr uint32_t kRetry = control_immediate(ControlOp::kRetry, 5);

  Peer peer_;
  Owner owner_;
  Lifeline life_{context_, memory_, std::make_unique<PeerDialer>(peer_), 30 * kSecond};
};

TEST_F(LifelineTest, DialsOnlyWhenItIsNeeded) {
  EXPECT_EQ(progress(), Status::kOk);
  EXPECT_EQ(peer_.dialed, 0);
  EXPECT_TRUE(life_.idle());
  open();
  EXPECT_EQ(peer_.dialed, 1);
  life_.end_need();
  EXPECT_EQ(progress(), Status::kOk);
  EXPECT_TRUE(life_.idle()) << "closed, as nothing is under way";
}

TEST_F(LifelineTest, AnOwnerLearnsWhatThePeerTookAndWhatIsLost) {
  open();
  for (uint32_t part = 1; part <= 3; ++part) send(part);
  peer_says({.taken = 2});
  EXPECT_EQ(life_.next(clock_.now_ns()), std::nullopt);
  EXPECT_THAT(owner_.done, testing::ElementsAre(1, 2));
  life_.end_need();
  EXPECT_EQ(progress(), Status::kOk);
  EXPECT_TRUE(life_.open()) << "a frame is under way";
  peer_.broken = true;
  EXPECT_EQ(life_.next(clock_.now_ns()), std::nullopt);
  EXPECT_THAT(owner_.lost, testing::ElementsAre(3));
  EXPECT_TRUE(life_.idle());
}

TEST_F(LifelineTest, AWorkComesWithItsRecordAndIsAnswered) {
  open();
  const auto end = static_cast<uint32_t>(memory_.inbox_bytes());
  peer_says({.kind = LifelineHeader::kControl, .offset = end - 16, .immediate = kRetry}, 16);
  EXPECT_EQ(life_.next(clock_.now_ns()), kRetry);
  EXPECT_EQ(memory_.inbox()[end - 17], std::byte{0});
  EXPECT_EQ(memory_.inbox()[end - 16], std::byte{7});
  EXPECT_EQ(memory_.inbox()[end - 1], std::byte{7});
  EXPECT_EQ(progress(), Status::kOk);
  ASSERT_EQ(peer_.got.size(), 1u);
  EXPECT_EQ(peer_.got[0].header.taken, 1u);
  EXPECT_EQ(peer_.got[0].header.kind, LifelineHeader::kTaken);
}

TEST_F(LifelineTest, ADialThatIsNotNeededAnyMoreEnds) {
  peer_.answers = false;
  life_.begin_need(clock_.now_ns());
  EXPECT_EQ(progress(), Status::kOk);
  life_.end_need();
  EXPECT_EQ(peer_.stopped, 1);
  EXPECT_TRUE(life_.idle());
}

TEST_F(LifelineTest, ThePassiveEndLeavesAConnectionThatIsNotNeededAndSilent) {
  Lifeline passive{context_, memory_, nullptr, 30 * kSecond};
  passive.take(std::make_unique<PeerStream>(peer_), clock_.now_ns());
  for (int i = 0; i < 10; ++i) {
    pass(1);
    peer_says({.kind = LifelineHeader::kAlive});
    EXPECT_EQ(passive.next(clock_.now_ns()), std::nullopt);
    EXPECT_EQ(passive.progress(clock_.now_ns()), Status::kOk);
    EXPECT_TRUE(passive.open());
  }
  pass(5);
  EXPECT_EQ(passive.progress(clock_.now_ns()), Status::kOk);
  EXPECT_TRUE(passive.idle());
}

TEST_F(LifelineTest, AFloodOfFramesEndsWithTheTurn) {
  open();
  for (uint32_t i = 0; i <= Lifeline::kMostFrames; ++i) peer_says({});
  peer_says({.kind = LifelineHeader::kControl, .immediate = kRetry});
  EXPECT_EQ(life_.next(clock_.now_ns()), std::nullopt);
  EXPECT_EQ(peer_.says.size(), 2u);
  EXPECT_EQ(progress(), Status::kOk);
  EXPECT_EQ(life_.next(clock_.now_ns()), kRetry);
}

TEST_F(LifelineTest, AskingEndsWhenTooManyFramesAreUnderWay) {
  open();
  for (uint32_t part = 0; part < Lifeline::kMostUnderWay; ++part) send(part);
  peer_.got.clear();
  pass(2);
  EXPECT_EQ(progress(), Status::kOk);
  EXPECT_TRUE(peer_.got.empty());
}

TEST_F(LifelineTest, WhatAPeerMayNotSayFailsTheLink) {
  const auto end = static_cast<uint32_t>(memory_.inbox_bytes());
  const std::vector<std::pair<LifelineHeader, size_t>> wrong = {
      {{.taken = 1}, 0},
      {{.taken = UINT32_MAX}, 0},
      {{.kind = LifelineHeader::kControl, .offset = end - 15, .immediate = kRetry}, 16},
      {{.kind = LifelineHeader::kControl, .offset = end + 1, .immediate = kRetry}, 0},
      {{.kind = LifelineHeader::kControl, .offset = UINT32_MAX, .immediate = kRetry}, 8192},
      {{.kind = LifelineHeader::kControl, .immediate = 0x12345}, 0},
      {{.kind = 3, .immediate = kRetry}, 0},
      {{.kind = UINT16_MAX, .immediate = kRetry}, 0},
  };
  for (const auto& [header, bytes] : wrong) {
    SCOPED_TRACE(testing::Message() << header.kind << " " << header.offset << " " << header.taken);
    LinkContext context{*devices_, *devices_->device(0), "peer", true, kNoTrafficClass, 0};
    Lifeline life{context, memory_, std::make_unique<PeerDialer>(peer_), 30 * kSecond};
    life.begin_need(clock_.now_ns());
    EXPECT_EQ(life.progress(clock_.now_ns()), Status::kOk);
    peer_says(header, bytes);
    EXPECT_EQ(life.next(clock_.now_ns()), std::nullopt);
    EXPECT_EQ(context.status(), Status::kRemote) << context.failure().what;
    peer_.says.clear();
  }
}

TEST_F(LifelineTest, APeerThatAnswersNothingIsDialedAgain) {
  open();
  send(1);
  for (int i = 0; i < 8; ++i) {
    pass(1);
    EXPECT_EQ(progress(), Status::kOk);
  }
  EXPECT_THAT(owner_.lost, testing::ElementsAre(1));
  EXPECT_GE(peer_.dialed, 2);
}

TEST_F(LifelineTest, APeerThatAnswersIsAskedAndKept) {
  open();
  for (uint32_t i = 1; i <= 20; ++i) {
    pass(1);
    EXPECT_EQ(progress(), Status::kOk);
    ASSERT_EQ(peer_.got.size(), i);
    EXPECT_EQ(peer_.got.back().header.kind, LifelineHeader::kAlive);
    peer_says({.taken = i});
    EXPECT_EQ(life_.next(clock_.now_ns()), std::nullopt);
  }
  EXPECT_EQ(peer_.dialed, 1);
}

TEST_F(LifelineTest, APeerThatIsAlwaysOneFrameBehindIsKept) {
  open();
  send(0);
  for (uint32_t i = 1; i <= 20; ++i) {
    pass(1);
    send(i);
    peer_says({.taken = static_cast<uint32_t>(peer_.got.size() - 1)});
    EXPECT_EQ(life_.next(clock_.now_ns()), std::nullopt);
    EXPECT_EQ(progress(), Status::kOk);
  }
  EXPECT_EQ(peer_.dialed, 1);
}

TEST_F(LifelineTest, TheLinkFailsWhenItsTimeIsOver) {
  peer_.answers = false;
  life_.begin_need(clock_.now_ns());
  pass(29);
  EXPECT_EQ(progress(), Status::kOk);
  pass(2);
  EXPECT_EQ(progress(), Status::kTimeout);
  EXPECT_THAT(context_.failure().what,
              testing::HasSubstr("no rail has returned for 30 s, and the peer is not reached: "
                                 "nobody listens"));
}

TEST_F(LifelineTest, TheLinkFailsAtOnceWhenThePeerHasForgottenIt) {
  peer_.forgot = true;
  life_.begin_need(clock_.now_ns());
  EXPECT_EQ(progress(), Status::kRemote);
  EXPECT_THAT(context_.failure().what, testing::HasSubstr("the test forgot the link"));
}

TEST_F(LifelineTest, APeerThatAnswersNoneOfManyWorksFailsTheLink) {
  open();
  for (uint32_t i = 0; i < Lifeline::kMostUnderWay; ++i) send(i);
  EXPECT_EQ(context_.status(), Status::kOk);
  send(0);
  EXPECT_EQ(context_.status(), Status::kRemote);
}

TEST_F(LifelineTest, ASecondCallReplacesTheFirst) {
  Lifeline passive{context_, memory_, nullptr, 30 * kSecond};
  Peer first, second;
  passive.take(std::make_unique<PeerStream>(first), clock_.now_ns());
  passive.send({ControlOp::kRetry, 1, &owner_, 1});
  passive.take(std::make_unique<PeerStream>(second), clock_.now_ns());
  EXPECT_THAT(owner_.lost, testing::ElementsAre(1));
  passive.send({ControlOp::kRetry, 2, &owner_, 2});
  EXPECT_EQ(first.got.size(), 1u);
  EXPECT_EQ(second.got.size(), 1u);
}

}  // namespace
}  // namespace slime::test
