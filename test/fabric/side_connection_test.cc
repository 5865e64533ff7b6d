// Messages over the connection beside the fabric: over TCP, and from a peer that says what it
// likes.
#include "transports/fabric/side_connection.h"

#include <numeric>

#include "test/fabric/support.h"
#include "test/fuzz/support/fuzz_rail.h"

namespace slime::fabric {
namespace {

struct Received {
  SideMessage message = SideMessage::kHello;
  std::vector<uint32_t> words;
};

std::vector<Received> messages_of(SideConnection& side_connection) {
  std::vector<Received> messages;
  SideMessage message = SideMessage::kHello;
  std::span<const uint32_t> words;
  while (side_connection.next(&message, &words))
    messages.push_back({message, {words.begin(), words.end()}});
  return messages;
}

std::vector<uint32_t> words_up_to(uint32_t count) {
  std::vector<uint32_t> words(count);
  std::iota(words.begin(), words.end(), 0u);
  return words;
}

// Two channels of one TCP rail.
struct Connected {
  std::shared_ptr<Rail> rail = open_side_rail();
  std::unique_ptr<Channel> left, right;

  Connected() {
    left = std::move(*rail->open_channel({.active = true, .first = true}));
    right = std::move(*rail->open_channel({}));
    const ChannelAddress of_left = left->address(), of_right = right->address();
    EXPECT_TRUE(eventually([&] {
      const Status first = left->connect(of_right), second = right->connect(of_left);
      return first == Status::kOk && second == Status::kOk;
    }));
  }
};

// A side connection whose peer sends these words.
struct FromPeer {
  fuzz::Wire wire;
  SideConnection side_connection{std::make_unique<fuzz::FuzzChannel>(wire)};

  void send(std::initializer_list<uint32_t> words, uint64_t bytes = 0) {
    for (const uint32_t word : words) {
      wire.arrivals.push_back({.kind = Done::Kind::kArrived, .immediate = word, .bytes = bytes});
    }
  }
};

TEST(FabricSideConnection, MessagesArriveInOrder) {
  Connected ends;
  SideConnection left(std::move(ends.left)), right(std::move(ends.right));
  left.send(SideMessage::kReady);
  left.send(SideMessage::kReported, words_up_to(3));
  left.send(SideMessage::kEnd);
  std::vector<Received> all;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(left.poll(), Status::kOk);
    EXPECT_EQ(right.poll(), Status::kOk);
    for (Received& one : messages_of(right)) all.push_back(std::move(one));
    return all.size() == 3;
  }));
  EXPECT_EQ(all[0].message, SideMessage::kReady);
  EXPECT_THAT(all[0].words, IsEmpty());
  EXPECT_EQ(all[1].message, SideMessage::kReported);
  EXPECT_THAT(all[1].words, ElementsAre(0, 1, 2));
  EXPECT_EQ(all[2].message, SideMessage::kEnd);
}

TEST(FabricSideConnection, ALongListBecomesSeveralMessages) {
  Connected ends;
  SideConnection left(std::move(ends.left)), right(std::move(ends.right));
  left.send(SideMessage::kCancelled, words_up_to(1'200));
  std::vector<size_t> lengths;
  std::vector<uint32_t> all;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(left.poll(), Status::kOk);
    EXPECT_EQ(right.poll(), Status::kOk);
    for (const Received& one : messages_of(right)) {
      EXPECT_EQ(one.message, SideMessage::kCancelled);
      lengths.push_back(one.words.size());
      all.insert(all.end(), one.words.begin(), one.words.end());
    }
    return all.size() == 1'200;
  }));
  EXPECT_THAT(lengths, ElementsAre(511, 511, 178));
  EXPECT_EQ(all, words_up_to(1'200));
}

TEST(FabricSideConnection, AMessageIsReturnedWhenItIsWhole) {
  FromPeer peer;
  peer.send({0x6c03'0002, 7});
  EXPECT_EQ(peer.side_connection.poll(), Status::kOk);
  EXPECT_THAT(messages_of(peer.side_connection), IsEmpty());
  peer.send({8, 0x6c02'0000});
  EXPECT_EQ(peer.side_connection.poll(), Status::kOk);
  const auto messages = messages_of(peer.side_connection);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_THAT(messages[0].words, ElementsAre(7, 8));
  EXPECT_EQ(messages[1].message, SideMessage::kReady);
}

TEST(FabricSideConnection, AWordThatIsNoHeadIsRefused) {
  for (const uint32_t word : {0x0000'0000u, 0x6d02'0000u, 0x6c00'0000u, 0x6c09'0000u, 0x6c03'0200u,
                              0x6c03'ffffu, UINT32_MAX}) {
    FromPeer peer;
    peer.send({0x6c02'0000, word});
    EXPECT_EQ(peer.side_connection.poll(), Status::kOk);
    EXPECT_EQ(messages_of(peer.side_connection).size(), 1u) << "what came before";
    EXPECT_EQ(peer.side_connection.poll(), Status::kRemote) << word;
    EXPECT_EQ(peer.side_connection.failure().what,
              "the peer sent something that is no message; use the same libnet-slime on all hosts");
  }
}

TEST(FabricSideConnection, BytesAreRefused) {
  FromPeer peer;
  peer.send({0x6c02'0000}, 4);
  EXPECT_EQ(peer.side_connection.poll(), Status::kRemote);
  EXPECT_EQ(peer.side_connection.failure().what, "the peer sent bytes where messages are expected");
  EXPECT_EQ(peer.side_connection.poll(), Status::kRemote) << "for good";
}

TEST(FabricSideConnection, APeerThatNeverReadsIsAFailure) {
  Connected ends;
  SideConnection left(std::move(ends.left));
  Status status = Status::kOk;
  for (int i = 0; i < 10'000 && status == Status::kOk; ++i) {
    left.send(SideMessage::kReported, words_up_to(511));
    status = left.poll();
  }
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_EQ(left.failure().what, "the peer does not read what it is told");
}

TEST(FabricSideConnection, WhatComesAtOnceIsLimited) {
  FromPeer peer;
  for (size_t i = 0; i < 2 * SideConnection::kMostWaiting; ++i) peer.send({0x6c02'0000});
  EXPECT_EQ(peer.side_connection.poll(), Status::kOk);
  const size_t first = messages_of(peer.side_connection).size();
  EXPECT_LE(first, SideConnection::kMostWaiting + 64);
  size_t all = first;
  while (!peer.wire.arrivals.empty()) {
    EXPECT_EQ(peer.side_connection.poll(), Status::kOk);
    all += messages_of(peer.side_connection).size();
  }
  EXPECT_EQ(all, 2 * SideConnection::kMostWaiting);
}

TEST(FabricSideConnection, TheEndOfThePeersProcessIsHeardOf) {
  Connected ends;
  SideConnection left(std::move(ends.left));
  ends.right.reset();
  EXPECT_TRUE(eventually([&] { return left.poll() != Status::kOk; }));
  EXPECT_NE(left.failure().what, "");
}

}  // namespace
}  // namespace slime::fabric
