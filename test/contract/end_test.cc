// What rail.h promises about fences and ends.
#include "test/contract/checks.h"
#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

template <typename T>
class RailEnd : public Contract<T> {
 protected:
  void expect_none(const Problems& problems) {
    for (const std::string& problem : problems) ADD_FAILURE() << problem;
  }
};
TYPED_TEST_SUITE(RailEnd, AllRails, RailName);

TYPED_TEST(RailEnd, NothingIsWrittenAfterTheFence) {
  for (int rounds = 0; rounds <= 36; rounds += 3) {
    SCOPED_TRACE(rounds);
    this->in_each_mode([&](Pair& pair) { this->expect_none(fence_problems(pair, rounds)); });
  }
}

// The receiver has not looked at anything yet: where its NIC confirms, it has all the same.
TYPED_TEST(RailEnd, WhatWasConfirmedIsReportedThoughTheReceiverFences) {
  for (size_t count = 1; count <= 20; count += 3) {
    Pair pair(*this->world_, {.confirm_delivery = true});
    ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
    Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(count, 1'000));
    pair.run_alone(pair.left);
    pair.right.channel->fence();
    pair.settle();
    EXPECT_EQ(ledger.sent_count(), pair.right.rail->caps().confirms_in_hardware ? count : 0);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(ledger.has_arrived(i) || !ledger.was_confirmed(i)) << i;
    }
    this->expect_clean(pair);
  }
}

// The order in which the engine leaves a channel: it fails, is fenced, and is asked for the rest.
TYPED_TEST(RailEnd, WhatWasConfirmedIsReportedAfterAFailureAndAFence) {
  Pair pair(*this->world_, {.confirm_delivery = true});
  ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
  Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(12, 1'000));
  Transfer& unlucky = pair.transfer(pair.right, {50});
  pair.post(pair.left, 6);
  Work bad = unlucky.works()[0];
  bad.local -= 1'000;  // not registered: this end alone fails
  size_t taken = 0;
  (void)pair.right.channel->post({&bad, 1}, &taken);
  const auto end = std::chrono::steady_clock::now() + kHangGuard;
  while (pair.right.status == Status::kOk && std::chrono::steady_clock::now() < end) {
    pair.poll(pair.right, 3);
    this->world_->pump();
  }
  ASSERT_NE(pair.right.status, Status::kOk);
  pair.run_alone(pair.left);  // the other six, if this end has not heard
  pair.right.channel->fence();
  pair.right.status = Status::kOk;
  for (int i = 0; i < 100; ++i) {
    pair.poll(pair.right, 3);
    this->world_->pump();
  }
  EXPECT_EQ(pair.right.status, Status::kOk) << "a failure after the fence";
  for (size_t i = 0; i < ledger.size(); ++i) {
    EXPECT_TRUE(ledger.has_arrived(i) || !ledger.was_confirmed(i)) << i;
  }
  for (const std::string& problem : ledger.problems()) ADD_FAILURE() << problem;
}

// Both directions die with a fence, and the fence of one end does not wait for that of the other.
TYPED_TEST(RailEnd, BothEndsMayFence) {
  this->in_each_mode([this](Pair& pair) {
    Transfer& there = pair.transfer(pair.left, std::vector<uint32_t>(60, 700));
    Transfer& back = pair.transfer(pair.right, std::vector<uint32_t>(60, 700));
    for (int i = 0; i < 9; ++i) {
      for (End* end : {&pair.left, &pair.right}) pair.post(*end, 4), pair.poll(*end, 2);
      this->world_->pump();
    }
    pair.left.channel->fence();
    pair.right.channel->fence();
    const auto there_before = there.target().copy();
    const auto back_before = back.target().copy();
    pair.settle();
    EXPECT_TRUE(there.target().copy() == there_before);
    EXPECT_TRUE(back.target().copy() == back_before);
    EXPECT_EQ(pair.left.status, Status::kOk);
    EXPECT_EQ(pair.right.status, Status::kOk);
    this->expect_clean(pair);
  });
}

TYPED_TEST(RailEnd, FenceBeforeConnectAndBeforeTheEnd) {
  Pair pair(*this->world_, {});
  pair.left.channel->fence();
  pair.settle();
  EXPECT_EQ(pair.left.status, Status::kOk);
  Pair other(*this->world_, {});
  ASSERT_TRUE(other.connect());
  other.right.channel->fence();
  other.right.channel.reset();
  EXPECT_TRUE(other.await_failure(other.left));
  EXPECT_EQ(other.left.status, Status::kRemote);
}

TYPED_TEST(RailEnd, WhatWasSentArrivesThoughTheSenderClosed) {
  for (int rounds = 0; rounds <= 36; rounds += 3) {
    SCOPED_TRACE(rounds);
    this->in_each_mode([&](Pair& pair) { this->expect_none(close_problems(pair, rounds)); });
  }
}

TYPED_TEST(RailEnd, WhatHadArrivedIsReportedBeforeTheFailure) {
  Pair pair(*this->world_, {});
  ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
  Transfer& ledger = pair.transfer(pair.right, std::vector<uint32_t>(15, 600));
  Transfer& unlucky = pair.transfer(pair.left, {50});
  pair.run_alone(pair.right);
  const size_t sent = ledger.sent_count();
  if (!this->world_->properties().sent_by_polls_of_both) {
    ASSERT_EQ(sent, ledger.size());
  }
  Work bad = unlucky.works()[0];
  bad.local -= 1'000;
  size_t taken = 1;
  const Status failed = pair.left.channel->post({&bad, 1}, &taken);
  EXPECT_NE(failed, Status::kOk);
  EXPECT_EQ(taken, 0U);
  EXPECT_TRUE(pair.await_failure(pair.left));
  EXPECT_EQ(pair.left.status, failed);
  EXPECT_GE(ledger.arrived_count(), sent);
  for (const std::string& problem : ledger.problems()) ADD_FAILURE() << problem;
}

// The receiver has not looked at all when the sender is gone.
TYPED_TEST(RailEnd, WhatWasSentArrivesThoughTheReceiverSlept) {
  Pair pair(*this->world_, {});
  ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
  Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(20, 1'500));
  pair.run_alone(pair.left);
  const size_t sent = ledger.sent_count();
  if (!this->world_->properties().sent_by_polls_of_both) {
    ASSERT_EQ(sent, ledger.size());
  }
  pair.left.channel.reset();
  EXPECT_TRUE(pair.await_failure(pair.right));
  EXPECT_EQ(pair.right.status, Status::kRemote);
  EXPECT_GE(ledger.arrived_count(), sent);
  this->expect_clean(pair);
}

TYPED_TEST(RailEnd, AnIdlePeerThatClosesIsNamed) {
  this->in_each_mode([this](Pair& pair) {
    const std::string name = pair.left.channel->peer_name();
    EXPECT_FALSE(name.empty());
    pair.right.channel.reset();
    ASSERT_TRUE(pair.await_failure(pair.left));
    EXPECT_EQ(pair.left.status, Status::kRemote);
    const Error& error = pair.left.channel->failure();
    EXPECT_EQ(error.status, Status::kRemote);
    EXPECT_NE(error.what.find(name), std::string::npos) << error.what;
    EXPECT_EQ(pair.left.channel->peer_name(), name);
  });
}

TYPED_TEST(RailEnd, TheSenderLearnsThatTheReceiverClosed) {
  this->in_each_mode([this](Pair& pair) {
    Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(100, 2'000));
    for (int i = 0; i < 10; ++i) {
      pair.post(pair.left, 8);
      pair.poll(pair.right, 2);
      this->world_->pump();
    }
    pair.right.channel.reset();
    ledger.target().deregister();
    const auto before = ledger.target().copy();
    for (int i = 0; i < 100'000 && pair.left.status == Status::kOk; ++i) {
      pair.post(pair.left, 8);
      pair.poll(pair.left, 8);
      this->world_->pump();
    }
    EXPECT_EQ(pair.left.status, Status::kRemote);
    EXPECT_TRUE(ledger.target().copy() == before) << "written after the channel was closed";
  });
}

TYPED_TEST(RailEnd, ClosingManyTimesLeavesNothingBehind) {
  for (int i = 0; i < 100; ++i) {
    Pair pair(*this->world_, {i % 2 == 0, i % 3 == 0});
    if (i % 5 == 4) continue;  // never connected
    ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
    pair.transfer(pair.left, {100, 0, 5'000});
    if (i % 5 == 3) pair.post(pair.left, 2);
    if (i % 5 < 3) this->expect_delivery(pair);
    if (i % 2 == 0) pair.right.channel.reset();
  }
}

}  // namespace
}  // namespace slime::contract
