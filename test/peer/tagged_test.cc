// Messages with tags between engines of one process, over tcp.
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kShort = SLIME_SHORT_BYTES;

std::string text_of(size_t bytes, char first = 'a') {
  std::string text(bytes, 0);
  std::iota(text.begin(), text.end(), first);
  return text;
}

class TaggedTest : public testing::Test {
 protected:
  static void expect_ok(TestEngine& engine, slime_request request) {
    const slime_result result = engine.end(request);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
  }
  static void expect_error(TestEngine& engine, slime_request request, int status,
                           const char* words) {
    const slime_result result = engine.end(request);
    EXPECT_EQ(result.status, status) << result.text;
    EXPECT_NE(std::strstr(result.text, words), nullptr) << result.text;
  }
  static bool is_open(TestEngine& engine, slime_request request) {
    return slime_wait(engine.engine, request, 20 * kMs, nullptr) == SLIME_AGAIN;
  }
  // Receives what is there with this tag.
  static std::string take(TestEngine& engine, uint64_t tag, size_t room = kShort) {
    std::string text(room, '?');
    const slime_result result = engine.end(engine.receive(SLIME_ANY_PEER, text, tag));
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(result.tag, tag);
    text.resize(result.bytes);
    return text;
  }

  TestEngine here, there;
  const slime_peer peer = here.know(there);
};

TEST_F(TaggedTest, MessagesOfAnySizeComeToReceivesBeforeAndAfter) {
  const std::vector<size_t> sizes = {0, 1, 296, 297, kShort, kShort + 1, 1 << 20, 80 << 20, 3};
  for (const bool receives_first : {false, true}) {
    std::vector<std::string> sent, rooms;
    for (const size_t size : sizes) sent.push_back(text_of(size));
    for (const size_t size : sizes) rooms.emplace_back(size + 1, '?');
    std::vector<slime_request> sends, receives;
    const auto receive_all = [&] {
      for (std::string& room : rooms) receives.push_back(there.receive(SLIME_ANY_PEER, room, 9));
    };
    if (receives_first) receive_all();
    for (const std::string& text : sent) sends.push_back(here.send(peer, text, 9));
    if (!receives_first) {
      expect_ok(here, sends.front());
      EXPECT_TRUE(is_open(here, sends[5]));  // it is read when a receive fits it
      receive_all();
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      const slime_result result = there.end(receives[i]);
      ASSERT_EQ(result.status, SLIME_OK) << result.text;
      EXPECT_EQ(result.bytes, sizes[i]);
      EXPECT_EQ(result.tag, 9u);
      EXPECT_TRUE(rooms[i] == sent[i] + "?") << sizes[i];
      if (i > 0 || receives_first) expect_ok(here, sends[i]);
      std::string answer = "answer", back(6, 0);
      const slime_request answered = there.send(result.peer, answer, i);
      EXPECT_EQ(here.end(here.receive(peer, back, i)).peer, peer);
      EXPECT_EQ(back, answer);
      expect_ok(there, answered);
    }
  }
}

TEST_F(TaggedTest, TagsAndMasksSayWhatFits) {
  std::array<std::string, 3> rooms = {"?", "?", "?"};
  const slime_request low = there.receive(SLIME_ANY_PEER, rooms[0], 0x05, 0x0f);
  const slime_request any = there.receive(SLIME_ANY_PEER, rooms[1], 0, 0);
  const slime_request all = there.receive(SLIME_ANY_PEER, rooms[2], 0xf5);
  expect_ok(here, here.send(peer, "1", 0xf4));
  expect_ok(here, here.send(peer, "2", 0xf5));
  expect_ok(here, here.send(peer, "3", 0xf5));
  EXPECT_EQ(there.end(any).tag, 0xf4u);
  EXPECT_EQ(there.end(low).tag, 0xf5u);
  EXPECT_EQ(there.end(all).tag, 0xf5u);
  EXPECT_EQ(rooms, (std::array<std::string, 3>{"2", "1", "3"}));
}

TEST_F(TaggedTest, AReceiveFromOnePeerTakesNothingOfOthers) {
  TestEngine third;
  expect_ok(here, here.send(peer, "h", 1));
  const slime_peer from_here = [&] {
    std::string text(1, '?');
    return there.end(there.receive(SLIME_ANY_PEER, text, 1)).peer;
  }();
  std::string text(1, '?');
  const slime_request mine = there.receive(from_here, text, 1);
  expect_ok(third, third.send(third.know(there), "t", 1));
  EXPECT_TRUE(is_open(there, mine));
  expect_ok(here, here.send(peer, "H", 1));
  EXPECT_EQ(there.end(mine).peer, from_here);
  EXPECT_EQ(text, "H");
  EXPECT_EQ(take(there, 1), "t");
}

TEST_F(TaggedTest, WhatIsLongerThanItsReceiveIsGone) {
  for (const size_t size : {size_t{5}, kShort + 1}) {
    const std::string sent = text_of(size), next = "next";
    std::string room(4, '?');
    const slime_request request = here.send(peer, sent, 1);
    expect_error(there, there.receive(SLIME_ANY_PEER, room, 1), SLIME_ERR_INVALID,
                 "has room for 4");
    EXPECT_EQ(room, "????");
    if (size > kShort) {
      expect_error(here, request, SLIME_ERR_REMOTE, "room");
    } else {
      expect_ok(here, request);
    }
    expect_ok(here, here.send(peer, next, 1));
    EXPECT_EQ(take(there, 1), next);
  }
}

TEST_F(TaggedTest, AReceiveThatHasEndedTakesNoMessage) {
  std::string room(1, '?');
  const slime_request late = there.receive(SLIME_ANY_PEER, room, 1, UINT64_MAX, 20 * kMs);
  const slime_request dropped = there.receive(SLIME_ANY_PEER, room, 1);
  EXPECT_EQ(slime_release(there.engine, dropped), SLIME_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  expect_ok(here, here.send(peer, "x", 1));
  expect_error(there, late, SLIME_ERR_TIMEOUT, "no message");
  EXPECT_EQ(room, "?");
  EXPECT_EQ(take(there, 1), "x");
}

// Nothing else waits for messages that nobody receives, and each that waits comes in its turn.
TEST_F(TaggedTest, MessagesThatNobodyReceivesStopNothingElse) {
  constexpr size_t kKept = 4096, kMore = 100;
  std::vector<std::string> texts;
  std::vector<slime_request> requests;
  for (size_t i = 0; i < kKept + kMore; ++i) texts.push_back(std::to_string(i));
  for (const std::string& text : texts) requests.push_back(here.send(peer, text, 1));
  for (size_t i = 0; i < kKept; ++i) expect_ok(here, requests[i]);
  EXPECT_TRUE(is_open(here, requests[kKept]));
  expect_ok(here, here.notify(peer, "n"));
  EXPECT_EQ(there.fetch(1).size(), 1u);
  std::string back(1, '?');
  const slime_request receive = here.receive(peer, back, 2);
  std::string first(4, '?');
  const slime_result result = there.end(there.receive(SLIME_ANY_PEER, first, 1));
  EXPECT_EQ(first.substr(0, result.bytes), "0");
  expect_ok(there, there.send(result.peer, "b", 2));
  expect_ok(here, receive);
  for (size_t i = 1; i < texts.size(); ++i) EXPECT_EQ(take(there, 1), texts[i]);
  for (size_t i = kKept; i < texts.size(); ++i) expect_ok(here, requests[i]);
}

// Long ones that were given up are no obstacle to those that follow.
TEST_F(TaggedTest, ALongMessageThatWasGivenUpIsWithdrawn) {
  const std::string text = text_of(kShort + 1), more = text_of(kShort + 1, 'z');
  for (int round = 0; round < 20; ++round) {
    std::vector<slime_request> requests;
    for (int i = 0; i < 300; ++i) requests.push_back(here.send(peer, text, 1, kMs));
    for (const slime_request request : requests) {
      EXPECT_EQ(here.end(request).status, SLIME_ERR_TIMEOUT);
    }
  }
  const slime_request last = here.send(peer, more, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::string room(kShort + 1, '?');
  slime_result result = there.end(there.receive(SLIME_ANY_PEER, room, 1));
  for (int i = 0; i < 32 && result.status != SLIME_OK; ++i) {
    result = there.end(there.receive(SLIME_ANY_PEER, room, 1));  // it had not been told yet
  }
  EXPECT_EQ(result.status, SLIME_OK) << result.text;
  EXPECT_TRUE(room == more);
  expect_ok(here, last);
}

TEST_F(TaggedTest, AnEngineSendsToItself) {
  const slime_peer self = here.know(here);
  for (const size_t size : {size_t{10}, size_t{100'000}}) {
    const std::string text = text_of(size);
    const slime_request sent = here.send(self, text, 1);
    (void)is_open(here, sent);
    std::string room(size, '?');
    const slime_result result = here.end(here.receive(self, room, 1));
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    EXPECT_EQ(result.peer, self);
    EXPECT_TRUE(room == text);
    std::ranges::fill(room, '?');
    const slime_request waits = here.receive(SLIME_ANY_PEER, room, 2);
    expect_ok(here, here.send(self, text, 2));
    expect_ok(here, waits);
    EXPECT_TRUE(room == text);
  }
}

// What had come from it before can be received, unless its bytes were still there.
TEST_F(TaggedTest, ReceivesFromAPeerThatHasGoneEnd) {
  auto other = std::make_unique<TestEngine>();
  const slime_peer to = other->know(there);
  const std::string long_one = text_of(kShort + 1);
  expect_ok(*other, other->send(to, "1", 1));
  expect_ok(*other, other->send(to, "2", 1));
  (void)other->send(to, long_one, 3);
  std::string text(1, '?'), room(kShort + 1, '?');
  const slime_peer from = there.end(there.receive(SLIME_ANY_PEER, text, 1)).peer;
  const slime_request waits = there.receive(from, room, 2);
  EXPECT_TRUE(is_open(there, waits));
  other.reset();
  expect_error(there, waits, SLIME_ERR_REMOTE, "closed");
  EXPECT_EQ(there.end(there.receive(from, room, 3)).status, SLIME_ERR_REMOTE);
  EXPECT_TRUE(is_open(there, there.receive(SLIME_ANY_PEER, room, 3)));
  EXPECT_EQ(take(there, 1), "2");
}

TEST_F(TaggedTest, BadArgumentsAreRefused) {
  slime_request request = 0;
  char byte = 0;
  const auto sends = [&](slime_peer to, const void* data, size_t bytes) {
    return slime_send(here.engine, to, data, bytes, 1, nullptr, &request);
  };
  const auto receives = [&](slime_peer from, void* data, size_t bytes) {
    return slime_recv(here.engine, from, data, bytes, 1, 1, nullptr, &request);
  };
  EXPECT_EQ(sends(SLIME_ANY_PEER, &byte, 1), SLIME_ERR_INVALID);
  EXPECT_EQ(sends(peer + 1, &byte, 1), SLIME_ERR_INVALID);
  EXPECT_EQ(sends(peer, nullptr, 1), SLIME_ERR_INVALID);
  EXPECT_EQ(sends(peer, &byte, SIZE_MAX), SLIME_ERR_INVALID);
  EXPECT_EQ(receives(peer + 1, &byte, 1), SLIME_ERR_INVALID);
  EXPECT_EQ(receives(peer, nullptr, 1), SLIME_ERR_INVALID);
  EXPECT_EQ(receives(peer, &byte, SIZE_MAX), SLIME_ERR_INVALID);
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.flags = SLIME_WITH_IMMEDIATE;
  EXPECT_EQ(slime_send(here.engine, peer, &byte, 1, 1, &extra, &request), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_recv(here.engine, peer, &byte, 1, 1, 1, &extra, &request), SLIME_ERR_INVALID);
}

}  // namespace
}  // namespace slime
