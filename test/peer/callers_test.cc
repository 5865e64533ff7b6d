// Callers that look at a link again and again, and what comes when they have stopped.
#include "peer/callers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr uint64_t kWindow = Callers::kWindowNs, kGone = Callers::kGoneNs;

class CallersTest : public testing::Test {
 protected:
  // One looks every 10 us until then, and the service at the end.
  bool look_for(uint64_t ns, bool found = false) {
    for (const uint64_t end_ns = now_ns_ + ns; now_ns_ < end_ns; now_ns_ += 10'000) {
      callers_.came(now_ns_);
    }
    return callers_.weigh(now_ns_, found);
  }
  // Nobody looks; then the service does.
  bool rest_for(uint64_t ns, bool found = false) {
    now_ns_ += ns;
    return callers_.weigh(now_ns_, found);
  }

  Callers callers_;
  uint64_t now_ns_ = 1'000'000'000;
};

TEST_F(CallersTest, ThoseWhoStayAreReliedOnUntilTheyHaveGone) {
  EXPECT_FALSE(rest_for(kWindow));
  EXPECT_FALSE(callers_.look_after());
  EXPECT_TRUE(look_for(kWindow));
  EXPECT_TRUE(callers_.look_after());
  EXPECT_TRUE(callers_.need_not_look(now_ns_));
  EXPECT_FALSE(callers_.need_not_look(now_ns_ + kGone + 1));
  EXPECT_FALSE(rest_for(kWindow));
  EXPECT_FALSE(callers_.look_after());
}

TEST_F(CallersTest, AFewLooksAreNotEnough) {
  rest_for(kWindow);
  for (int i = 0; i < 10; ++i) {
    look_for(kWindow / 4);
    EXPECT_FALSE(rest_for(kWindow * 3 / 4));
  }
}

TEST_F(CallersTest, WhoSleepsIsToldByPollers) {
  rest_for(kWindow);
  ASSERT_TRUE(look_for(kWindow));
  callers_.begin_sleep();
  EXPECT_FALSE(callers_.look_after());
  EXPECT_TRUE(look_for(kWindow));  // another one
  EXPECT_FALSE(callers_.look_after());
  callers_.end_sleep();
  EXPECT_TRUE(callers_.look_after());
  callers_.rely_on_pollers();
  EXPECT_FALSE(callers_.look_after());
}

TEST_F(CallersTest, TheServiceLeavesOneThatSpinsAlone) {
  callers_.came(now_ns_);
  EXPECT_FALSE(callers_.need_not_look(now_ns_));
  callers_.begin_spin();
  EXPECT_TRUE(callers_.need_not_look(now_ns_));
  EXPECT_FALSE(callers_.need_not_look(now_ns_ + kGone + 1));  // it is stopped
  EXPECT_FALSE(callers_.look_after());
  callers_.end_spin();
  EXPECT_FALSE(callers_.need_not_look(now_ns_));
}

// How long it takes until they are relied on again after something was found late.
TEST_F(CallersTest, DoubtGrowsWithWhatIsFoundLateAndShrinksWithoutIt) {
  const auto look_until_relied_on = [&] {
    while (!look_for(kWindow)) {
    }
  };
  const auto doubt = [&] {
    rest_for(kWindow, true);
    const uint64_t begin_ns = now_ns_;
    look_until_relied_on();
    return now_ns_ - begin_ns;
  };
  rest_for(kWindow);
  look_until_relied_on();
  uint64_t last_ns = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t ns = doubt();
    EXPECT_GE(ns, Callers::kFirstDoubtNs << i);
    EXPECT_GT(ns, last_ns);
    last_ns = ns;
  }
  for (int i = 0; i < 20; ++i) doubt();
  EXPECT_LE(doubt(), Callers::kLongestDoubtNs + 4 * kWindow);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(look_for(kWindow));
  EXPECT_LE(doubt(), Callers::kFirstDoubtNs + 4 * kWindow);
}

// A program that has waited for many requests, one after the other, and then waits otherwise. All
// rounds together take less time than the service's looks at links that rest would (every 5 s).
class AfterManyWaitsTest : public testing::Test {
 protected:
  static constexpr int kRounds = 20;
  static constexpr int64_t kLimitNs = 60'000'000'000;

  ~AfterManyWaitsTest() override {
    EXPECT_LT(std::chrono::steady_clock::now() - begin_, std::chrono::seconds(30));
  }
  void wait_often() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
    while (std::chrono::steady_clock::now() < end) {
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

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<char> mine_ = std::vector<char>(4096), theirs_ = std::vector<char>(4096);
  TestEngine here_, there_;
  slime_region local_ = here_.add(mine_);
  slime_peer peer_ = here_.know(there_);
  slime_remote remote_ = here_.remote(peer_, there_.blob_of(there_.add(theirs_)));
  slime_peer back_ = there_.know(here_);
};

TEST_F(AfterManyWaitsTest, NotificationsAreThere) {
  for (int round = 1; round <= kRounds; ++round) {
    wait_often();
    const slime_request request = there_.notify(back_, "new");
    ASSERT_TRUE(comes([&] { return !here_.fetch(1).empty(); }));
    EXPECT_EQ(there_.end(request).status, SLIME_OK);
  }
}

TEST_F(AfterManyWaitsTest, ItsFunctionIsCalled) {
  static std::atomic<int> calls;
  calls = 0;
  slime_extra extra = SLIME_EXTRA_INIT;
  extra.callback = [](void*, slime_request, const slime_result* result) {
    if (result->status == SLIME_OK) ++calls;
  };
  const slime_assignment one{local_, remote_, 0, 0, 8};
  slime_request request = 0;
  for (int round = 1; round <= kRounds; ++round) {
    wait_often();
    ASSERT_EQ(slime_submit(here_.engine, peer_, SLIME_WRITE, &one, 1, &extra, &request), SLIME_OK);
    ASSERT_TRUE(comes([&] { return calls == round; }));
  }
}

TEST_F(AfterManyWaitsTest, AReceiveEnds) {
  for (int round = 1; round <= kRounds; ++round) {
    wait_often();
    slime_request receive = 0, send = 0;
    ASSERT_EQ(slime_recv(here_.engine, SLIME_ANY_PEER, mine_.data(), 8, 0, 0, nullptr, &receive),
              SLIME_OK);
    ASSERT_EQ(slime_send(there_.engine, back_, theirs_.data(), 8, 1, nullptr, &send), SLIME_OK);
    EXPECT_EQ(slime_wait(here_.engine, receive, kLimitNs, nullptr), SLIME_OK);
    EXPECT_EQ(slime_wait(there_.engine, send, kLimitNs, nullptr), SLIME_OK);
  }
}

}  // namespace
}  // namespace slime
