// Threads that poll a link again and again, and what comes when they have stopped.
#include "peer/polling_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/peer/test_engine.h"
#include "test/support/peer_life.h"

namespace slime {
namespace {

constexpr uint64_t kCheck = PollingThreads::kCheckNs, kGone = PollingThreads::kGoneNs;

class PollingThreadsTest : public testing::Test {
 protected:
  PollingThreadsTest() { rest_for(kCheck); }  // the first window begins

  // One polls every 10 us, and the service at the end.
  bool poll_for(uint64_t ns) {
    for (const uint64_t end_ns = now_ns_ + ns; now_ns_ < end_ns; now_ns_ += 10'000) {
      threads_.polls(now_ns_);
    }
    return threads_.end_window(now_ns_, false);
  }
  // Only the service polls, at the end.
  bool rest_for(uint64_t ns, bool found = false) {
    now_ns_ += ns;
    return threads_.end_window(now_ns_, found);
  }
  void poll_until_relied_on() {
    for (uint64_t i = 0; i <= 2 * PollingThreads::kLongestDoubtNs / kCheck; ++i) {
      if (poll_for(kCheck)) return;
    }
    ADD_FAILURE() << "they are doubted for ever";
  }
  // How long they are not relied on after something was found late.
  uint64_t doubt() {
    rest_for(kCheck, true);
    const uint64_t begin_ns = now_ns_;
    poll_until_relied_on();
    return now_ns_ - begin_ns;
  }

  PollingThreads threads_;
  uint64_t now_ns_ = 1'000'000'000;
};

TEST_F(PollingThreadsTest, AreReliedOnUntilTheyHaveGone) {
  EXPECT_FALSE(threads_.suffice());
  EXPECT_TRUE(poll_for(kCheck));
  EXPECT_TRUE(threads_.suffice());
  EXPECT_TRUE(threads_.service_may_skip(now_ns_));
  EXPECT_FALSE(threads_.service_may_skip(now_ns_ + kGone + 1));
  EXPECT_FALSE(rest_for(kCheck));
  EXPECT_FALSE(threads_.suffice());
}

TEST_F(PollingThreadsTest, HaveToBeThereForHalfOfTheTime) {
  poll_for(kCheck * 4 / 10);
  EXPECT_FALSE(rest_for(kCheck * 6 / 10));
  poll_for(kCheck * 6 / 10);
  EXPECT_TRUE(rest_for(kCheck * 4 / 10));
  for (uint64_t ns = 0; ns < kCheck; ns += 4 * PollingThreads::kMostBetweenNs) {
    threads_.polls(now_ns_ += 4 * PollingThreads::kMostBetweenNs);
  }
  EXPECT_FALSE(threads_.end_window(now_ns_, false));
}

TEST_F(PollingThreadsTest, DoNotSufficeWhileOneSleeps) {
  ASSERT_TRUE(poll_for(kCheck));
  threads_.begin_sleep();
  EXPECT_FALSE(threads_.suffice());
  EXPECT_FALSE(threads_.service_may_skip(now_ns_));
  EXPECT_TRUE(poll_for(kCheck));  // another one
  EXPECT_FALSE(threads_.suffice());
  threads_.end_sleep(now_ns_ + 3 * kGone);
  EXPECT_TRUE(threads_.suffice());
  EXPECT_TRUE(threads_.service_may_skip(now_ns_ + 3 * kGone));
}

TEST_F(PollingThreadsTest, BeginAgainWhenTheyAreNotToBeReliedOn) {
  poll_for(kCheck);
  poll_for(kCheck * 9 / 10);
  threads_.stop_relying();
  EXPECT_FALSE(threads_.suffice());
  EXPECT_FALSE(poll_for(kCheck * 1 / 10));
}

TEST_F(PollingThreadsTest, OneThatSpinsIsLeftAloneUnlessItIsStopped) {
  threads_.polls(now_ns_);
  EXPECT_FALSE(threads_.service_may_skip(now_ns_));
  threads_.begin_spin();
  EXPECT_TRUE(threads_.service_may_skip(now_ns_));
  EXPECT_FALSE(threads_.suffice());
  EXPECT_FALSE(threads_.service_may_skip(now_ns_ + kGone + 1));
  threads_.end_spin();
  EXPECT_FALSE(threads_.service_may_skip(now_ns_));
}

TEST_F(PollingThreadsTest, DoubtGrowsWithWhatIsFoundLateAndShrinksWithoutIt) {
  poll_until_relied_on();
  for (int i = 0; i < 4; ++i) {
    const uint64_t ns = doubt();
    EXPECT_GE(ns, PollingThreads::kFirstDoubtNs << i);
    EXPECT_LE(ns, (PollingThreads::kFirstDoubtNs << i) + 4 * kCheck);
  }
  for (int i = 0; i < 20; ++i) doubt();
  EXPECT_LE(doubt(), PollingThreads::kLongestDoubtNs + 4 * kCheck);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(poll_for(kCheck));
  EXPECT_LE(doubt(), PollingThreads::kFirstDoubtNs + 4 * kCheck);
}

RailCaps caps_to_write() {
  RailCaps caps;
  caps.opcodes |= opcode_bit(Opcode::kWrite);
  return caps;
}

// Two peers in virtual time, over a rail without a poller.
class PolledPeerTest : public testing::Test {
 protected:
  PolledPeerTest() {
    (void)test::connect_peers(network_, random_, hosts_, ends_, 1);
    serve();
    for (uint64_t ns = 0; ns <= kCheck; ns += 10'000) {
      network_.advance(10'000);
      here().polling().polls(network_.now_ns());
    }
  }
  ~PolledPeerTest() override {
    for (auto& end : ends_) end.reset();
  }

  Peer& here() { return ends_[0]->peer(); }
  Peer::Next serve() { return here().serve(network_.now_ns()); }
  // The other end tells this one.
  void tell() {
    auto request = std::make_shared<PeerRequest>();
    request->messages.push_back(Message::of(MessageKind::kImmediate, uint32_t{7}));
    (void)ends_[1]->peer().submit(std::move(request));
    while (network_.step()) {
    }
  }

  sim::Network network_{1};
  sim::Random random_{1};
  std::array<test::SimHost, 2> hosts_ = {
      test::SimHost{network_, 1, caps_to_write(), Settings(), "a"},
      test::SimHost{network_, 1, caps_to_write(), Settings(), "b"}};
  bool told_ = false;
  std::array<std::unique_ptr<test::PeerEnd>, 2> ends_ = {
      std::make_unique<test::PeerEnd>(hosts_[0], std::byte{1}, std::byte{2},
                                      [this](uint64_t, uint32_t) { return told_ = true; }),
      std::make_unique<test::PeerEnd>(hosts_[1], std::byte{2}, std::byte{1}, nullptr)};
};

TEST_F(PolledPeerTest, TheServiceFindsWhatComesAfterThreadsHaveGone) {
  EXPECT_EQ(serve(), Peer::Next::kPolledElsewhere);
  ASSERT_TRUE(here().polling().suffice());
  tell();
  EXPECT_EQ(serve(), Peer::Next::kPolledElsewhere);
  EXPECT_FALSE(told_);
  network_.advance(kCheck);
  EXPECT_NE(serve(), Peer::Next::kPolledElsewhere);
  EXPECT_TRUE(told_);
  EXPECT_FALSE(here().polling().suffice());
}

TEST_F(PolledPeerTest, TheServiceTakesWhatItIsHanded) {
  EXPECT_EQ(serve(), Peer::Next::kPolledElsewhere);
  auto request = std::make_shared<PeerRequest>();
  request->messages.push_back(Message::of(MessageKind::kImmediate, uint32_t{7}));
  here().hand(request);
  (void)serve();
  EXPECT_EQ(request->messages.size(), 0u) << "nobody has begun it";
}

// The program may do something else for a while after it has submitted a long one.
TEST_F(PolledPeerTest, MuchIsNotLeftToThreads) {
  constexpr size_t kBytes = 1 << 20;
  std::vector<std::byte> from(kBytes, std::byte{5}), to(kBytes);
  const auto mine = ends_[0]->make_region(from, 0, 0);
  const auto theirs = ends_[1]->make_region(to, kRemoteWrite, 1);
  const uint64_t handle = ends_[1]->messages.regions.add(theirs);
  const auto remote = std::make_shared<Remote>(address_of({}, handle, *theirs));
  EXPECT_EQ(serve(), Peer::Next::kPolledElsewhere);
  for (const size_t bytes : {size_t{8}, size_t{4096}, kBytes}) {
    auto request = std::make_shared<PeerRequest>();
    request->opcode = Opcode::kWrite;
    request->remotes.push_back(remote);
    request->regions.push_back(mine);
    request->append({from.data(), &mine->memory, remote.get(), 0, bytes});
    (void)here().submit(request);
    bool much = false;
    while (!request->done()) {
      much |= !here().threads_suffice();
      if (!network_.step()) network_.advance(1000);
      for (auto& end : ends_) end->move();
    }
    EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
    EXPECT_EQ(much, bytes != 4096) << bytes;  // the first one waits for keys
    EXPECT_TRUE(here().threads_suffice());
  }
  EXPECT_TRUE(from == to);
}

// Without a poller nobody can tell the one that sleeps, so the service looks soon, with a pause.
TEST_F(PolledPeerTest, TheServicePollsForOneThatSleeps) {
  EXPECT_EQ(serve(), Peer::Next::kPolledElsewhere);
  here().polling().begin_sleep();
  network_.advance(Peer::kSpinNs + 1);
  here().polling().polls(network_.now_ns());
  EXPECT_EQ(serve(), Peer::Next::kSoon);
  here().polling().end_sleep(network_.now_ns());
}

// A program that has waited for many requests, one after the other, and then waits otherwise.
class AfterManyWaitsTest : public testing::Test {
 protected:
  static constexpr int kRounds = 5, kWaits = 2000;
  static constexpr int64_t kLimitNs = 60'000'000'000;

  // For a while at most: threads may be stopped.
  void wait_often() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    for (int i = 0; i < kWaits && std::chrono::steady_clock::now() < end; ++i) {
      ASSERT_EQ(here_.run(peer_, SLIME_WRITE, {local_, remote_, 0, 0, 8}).status, SLIME_OK);
    }
  }
  template <typename Condition>
  bool comes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kLimitNs);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::vector<char> mine_ = std::vector<char>(4096), theirs_ = std::vector<char>(4096);
  TestEngine here_, there_;
  slime_region local_ = here_.add(mine_);
  slime_peer peer_ = here_.know(there_);
  slime_remote remote_ = here_.remote(peer_, there_.blob_of(there_.add(theirs_)));
  slime_peer back_ = there_.know(here_);
};

TEST_F(AfterManyWaitsTest, NotificationsAreThere) {
  for (int round = 1; round <= kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(wait_often());
    const std::string text = "round " + std::to_string(round);
    const slime_request request = there_.notify(back_, text);
    std::vector<std::pair<slime_peer, std::string>> fetched;
    ASSERT_TRUE(comes([&] { return !(fetched = here_.fetch(1)).empty(); }));
    EXPECT_EQ(fetched[0], std::pair(peer_, text));
    EXPECT_EQ(there_.end(request).status, SLIME_OK);
  }
}

TEST_F(AfterManyWaitsTest, FunctionsAreCalled) {
  std::atomic<int> calls = 0;
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.user = &calls;
  extra.callback = [](void* user, slime_request, const slime_result* result) {
    if (result->status == SLIME_OK) ++*static_cast<std::atomic<int>*>(user);
  };
  const slime_assignment one{local_, remote_, 0, 8, 8};
  slime_request request = 0;
  for (int round = 1; round <= kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(wait_often());
    ASSERT_EQ(slime_submit(here_.engine, peer_, SLIME_WRITE, &one, 1, &extra, &request), SLIME_OK);
    ASSERT_TRUE(comes([&] { return calls == 2 * round - 1; }));
    ASSERT_NO_FATAL_FAILURE(wait_often());
    std::string room(8, ' ');
    ASSERT_EQ(slime_recv(here_.engine, peer_, room.data(), room.size(), 0, 0, &extra, &request),
              SLIME_OK);
    EXPECT_EQ(there_.end(there_.send(back_, "8 bytes!", 1)).status, SLIME_OK);
    ASSERT_TRUE(comes([&] { return calls == 2 * round; }));
    EXPECT_EQ(room, "8 bytes!");
  }
}

TEST_F(AfterManyWaitsTest, ReceivesOfOnePeerAndOfAnyEnd) {
  for (const slime_peer from : {peer_, slime_peer{SLIME_ANY_PEER}}) {
    ASSERT_NO_FATAL_FAILURE(wait_often());
    std::string room(8, ' ');
    const slime_request receive = here_.receive(from, room, 0, 0);
    const slime_request send = there_.send(back_, "8 bytes!", 1);
    EXPECT_EQ(here_.end(receive).status, SLIME_OK);
    EXPECT_EQ(there_.end(send).status, SLIME_OK);
    EXPECT_EQ(room, "8 bytes!");
  }
}

}  // namespace
}  // namespace slime
