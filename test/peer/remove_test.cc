// Peers that a program removes, and engines that are closed.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "test/support/environment.h"
#include "test/support/other_process.h"

namespace slime {
namespace {

constexpr size_t kBytes = 64 << 20;

class RemoveTest : public testing::Test {
 protected:
  static void expect_error(TestEngine& engine, slime_request request, const char* words) {
    const slime_result result = engine.end(request);
    EXPECT_EQ(result.status, SLIME_ERR_REMOTE) << result.text;
    EXPECT_NE(std::strstr(result.text, words), nullptr) << result.text;
  }
  static slime_request expect(TestEngine& engine, slime_peer from) {
    slime_request request = 0;
    EXPECT_EQ(slime_expect(engine.engine, from, 1, 1, nullptr, &request), SLIME_OK);
    return request;
  }
  static void await_gone(TestEngine& engine, slime_peer peer) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (engine.info(peer).state != SLIME_PEER_GONE && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(engine.info(peer).state, SLIME_PEER_GONE);
  }
  // A message each way, in this engine's turn and in that of the other one. Returns the peer that
  // the other one knows.
  slime_peer talk() {
    std::string to = "to", back = "back", room(4, '?');
    EXPECT_EQ(here.end(here.send(peer, to, 1)).status, SLIME_OK);
    const slime_peer from = there.end(there.receive(SLIME_ANY_PEER, room, 1)).peer;
    const slime_request sent = there.send(from, back, 2);
    EXPECT_EQ(here.end(here.receive(peer, room, 2)).status, SLIME_OK);
    EXPECT_EQ(room, back);
    EXPECT_EQ(there.end(sent).status, SLIME_OK);
    return from;
  }

  std::vector<char> mine = std::vector<char>(kBytes, 'm'), theirs = std::vector<char>(kBytes, 't');
  TestEngine here, there;
  const std::vector<char> address = there.address();
  slime_peer peer = here.know(address);
};

TEST_F(RemoveTest, EndsWhatWaitsForThePeerAtBothEnds) {
  std::string room(1, '?');
  const slime_peer from = talk();
  const slime_request receive = here.receive(peer, room, 1), immediate = expect(here, peer);
  const slime_request any = here.receive(SLIME_ANY_PEER, room, 1);
  const slime_request there_waits = expect(there, from);
  here.remove(peer);
  expect_error(here, receive, "removed the peer");
  expect_error(here, immediate, "removed the peer");
  expect_error(there, there_waits, "has removed this one");
  EXPECT_EQ(there.info(from).state, SLIME_PEER_GONE);
  slime_peer_info info = SLIME_PEER_INFO_INIT;
  slime_request none = 0;
  EXPECT_EQ(slime_peer_state(here.engine, peer, &info), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_remove_peer(here.engine, peer), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_notify(here.engine, peer, "x", 1, nullptr, &none), SLIME_ERR_INVALID);
  EXPECT_EQ(slime_wait(here.engine, any, 0, nullptr), SLIME_AGAIN);
  here.cancel(any);
  EXPECT_EQ(here.end(any).status, SLIME_ERR_CANCELLED);
}

TEST_F(RemoveTest, EndsAWriteThatMoves) {
  const slime_region local = here.add(mine);
  const auto blob = there.blob_of(there.add(theirs));
  for (int i = 0; i < 10; ++i) {
    const slime_assignment all = {local, here.remote(peer, blob), 0, 0, kBytes};
    (void)talk();
    const slime_request write = here.begin(peer, SLIME_WRITE, all);
    here.remove(peer);
    const slime_result result = here.end(write);
    EXPECT_TRUE(result.status == SLIME_OK || result.status == SLIME_ERR_REMOTE) << result.text;
    peer = here.know(address);
  }
}

// Both ends forget what they have told each other before, whichever of them removes the other.
TEST_F(RemoveTest, APeerCanBeAddedAgain) {
  const std::string long_one(SLIME_SHORT_BYTES + 1, 'l');
  for (int i = 0; i < 20; ++i) {
    const slime_peer from = talk();
    EXPECT_EQ(here.end(here.notify(peer, std::to_string(i))).status, SLIME_OK);
    const auto fetched = there.fetch(2);
    ASSERT_EQ(fetched.size(), 1u);
    EXPECT_EQ(fetched[0].second, std::to_string(i));
    const slime_request never_read = here.send(peer, long_one, 9);
    if (i % 2 == 0) {
      here.remove(peer);
      expect_error(here, never_read, "removed");
      peer = here.know(address);
    } else {
      there.remove(from);
      EXPECT_EQ(here.end(never_read).status, SLIME_ERR_REMOTE);
      await_gone(here, peer);
      EXPECT_EQ(here.know(address), peer);  // the same, and it is not gone any more
    }
  }
}

TEST_F(RemoveTest, WhatHasComeFromItIsDropped) {
  const slime_peer from = talk();
  const std::string text = "x";
  EXPECT_EQ(here.end(here.notify(peer, text)).status, SLIME_OK);
  EXPECT_EQ(here.end(here.send(peer, text, 3)).status, SLIME_OK);
  there.remove(from);
  EXPECT_TRUE(there.fetch(1).empty());
  std::string room(1, '?');
  EXPECT_EQ(there.end(there.receive(SLIME_ANY_PEER, room, 3, UINT64_MAX, 20'000'000)).status,
            SLIME_ERR_TIMEOUT);
}

TEST_F(RemoveTest, AnEngineRemovesItself) {
  for (int i = 0; i < 5; ++i) {
    const slime_peer self = here.know(here);
    std::string text = "self", room(4, '?');
    const slime_request receive = here.receive(self, room, 1);
    EXPECT_EQ(here.end(here.send(self, text, 1)).status, SLIME_OK);
    EXPECT_EQ(here.end(receive).status, SLIME_OK);
    const slime_request waits = here.receive(self, room, 1);
    here.remove(self);
    expect_error(here, waits, "removed");
  }
}

TEST_F(RemoveTest, AnEngineThatIsClosedIsGoneAtOnce) {
  const slime_peer from = talk();
  const slime_request waits = expect(there, from);
  here.close();
  expect_error(there, waits, "was closed");
  EXPECT_EQ(there.info(from).state, SLIME_PEER_GONE);
}

// What it had received is known to have been received.
TEST_F(RemoveTest, AnEngineIsClosedWhenAllItsMessagesHaveCome) {
  const std::string long_one(SLIME_SHORT_BYTES + 1, 'l');
  for (int i = 0; i < 50; ++i) {
    TestEngine brief;
    const slime_peer to = there.know(brief);
    const slime_request sent = there.send(to, long_one, 1);
    std::string room = long_one;
    EXPECT_EQ(brief.end(brief.receive(SLIME_ANY_PEER, room, 1)).status, SLIME_OK);
    brief.close();
    const slime_result result = there.end(sent);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
    there.remove(to);
  }
}

TEST_F(RemoveTest, APeerLearnsOfItAlsoWhenTheEngineIsClosedAtOnce) {
  for (int i = 0; i < 20; ++i) {
    TestEngine brief;
    const slime_peer to = brief.know(there);
    EXPECT_EQ(brief.end(brief.notify(to, "n")).status, SLIME_OK);
    const auto came = there.fetch(1);
    ASSERT_EQ(came.size(), 1u);
    const slime_request waits = expect(there, came[0].first);
    brief.remove(to);
    brief.close();
    const slime_result result = there.end(waits);
    EXPECT_EQ(result.status, SLIME_ERR_REMOTE) << result.text;
    there.remove(came[0].first);
  }
}

// The link to the peer that was removed does not write when that to the new one does.
TEST_F(RemoveTest, WritesOfThePeerAreQuietAfterwards) {
  const slime_region local = there.add(theirs);
  const auto blob = here.blob_of(here.add(mine));
  for (int i = 0; i < 20; ++i) {
    const slime_peer from = talk();
    const slime_assignment all = {local, there.remote(from, blob), 0, 0, kBytes};
    const slime_request write = there.begin(from, SLIME_WRITE, all);
    here.remove(peer);
    peer = here.know(address);
    EXPECT_EQ(here.end(here.notify(peer, "n")).status, SLIME_OK);
    (void)there.end(write);
    set_all(mine, 'q');
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(all_are(mine, 'q'));
  }
}

TEST_F(RemoveTest, FreesPeersThatNeverConnected) {
  const std::vector<char> closed = [] { return TestEngine().address(); }();
  const test::Effort effort("SLIME_REMOVALS", 20'000);
  for (uint64_t i = 0; effort.goes_on(i); ++i) here.remove(here.know(closed));
}

// Threads that use peers while others remove them: each request ends.
TEST_F(RemoveTest, AtAnyMoment) {
  const slime_region local = here.add(mine);
  const auto blob = there.blob_of(there.add(theirs));
  std::atomic<slime_peer> current = peer;
  std::atomic<bool> ends = false;
  std::atomic<uint64_t> done = 0, failed = 0;
  const auto use = [&](int op) {
    while (!ends) {
      const slime_peer to = current;
      slime_remote remote = 0;
      if (slime_import(here.engine, to, blob.data(), &remote) != SLIME_OK) continue;
      const slime_assignment one = {local, remote, 0, 0, 100'000};
      slime_request write = 0, notice = 0;
      if (slime_submit(here.engine, to, op, &one, 1, nullptr, &write) == SLIME_OK) {
        ++(here.end(write).status == SLIME_OK ? done : failed);
      }
      if (slime_notify(here.engine, to, "n", 1, nullptr, &notice) == SLIME_OK) {
        ++(here.end(notice).status == SLIME_OK ? done : failed);
      }
      EXPECT_EQ(slime_release(here.engine, remote), SLIME_OK);
    }
  };
  std::vector<std::thread> threads;
  for (const int op : {SLIME_READ, SLIME_WRITE}) threads.emplace_back(use, op);
  const test::Effort effort("SLIME_REMOVALS", 200);
  for (uint64_t i = 0; effort.goes_on(i); ++i) {
    const uint64_t before = done;
    for (int k = 0; k < 20 && done == before; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    (void)there.fetch(1000);
    here.remove(current);
    current = here.know(address);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(done, 0u);
}

}  // namespace
}  // namespace slime
