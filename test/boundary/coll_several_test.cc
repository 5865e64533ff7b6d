// Several switches side by side: each takes a share of every operation.
#include <algorithm>
#include <cstring>
#include <random>

#include "test/boundary/support/coll_switch.h"
#include "test/support/unused_address.h"

namespace slime::boundary {
namespace {

// switch_ is the first; the second weighs twice as much as each of the others.
class CollSeveral : public CollSwitch {
 protected:
  CollSeveral() {
    switch_ = switch_at(test::unused_address());
    second_ = std::make_unique<LocalSwitch>();
    third_ = std::make_unique<LocalSwitch>(LocalSwitchOptions{.max_lanes = 32});
  }
  void settings() override {
    set("NCCL_SLIME_SWITCH_TIMEOUT", "1");
    set("NCCL_SLIME_SWITCH_RETRY", "0.1");
  }
  std::string switches() const override {
    return switch_->address() + "," + second_->address() + "*2," + third_->address();
  }
  // Sums up until this switch has had contributions that it did not have before.
  void expect_used(const LocalSwitch& one) {
    const uint64_t before = contributions(one);
    EXPECT_TRUE(wait_until([&] {
      sum();
      return contributions(one) > before || HasFatalFailure();
    }));
  }

  std::unique_ptr<LocalSwitch> second_, third_;
};
// The version makes no difference.
INSTANTIATE_TEST_SUITE_P(Net, CollSeveral, testing::Values(8));

// None of them is lost, however slow it is.
class CollShares : public CollSeveral {
 protected:
  void settings() override { CollSwitch::settings(); }
};
INSTANTIATE_TEST_SUITE_P(Net, CollShares, testing::Values(8));

TEST_P(CollShares, EachTakesItsOwn) {
  for (int i = 0; i < 5; ++i) sum();
  const LocalSwitch* const all[] = {switch_.get(), second_.get(), third_.get()};
  double rounds[3] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const auto job = job_on(*all[i]);
    EXPECT_EQ(job["lanes"], 32) << "what the narrowest takes, and so all";
    EXPECT_EQ(job["share"], i + 1);
    EXPECT_EQ(job["shares"], 3);
    EXPECT_EQ(job["session"], job_on(*switch_)["session"]);
    const uint32_t slots = job["slots"];
    rounds[i] = job["counters"]["rounds"];
    rounds[i] -= std::min(slots, 8U);  // of the trial
  }
  // 5 operations of 94 chunks.
  EXPECT_NEAR(rounds[0], 5 * 94 / 4.0, 2);
  EXPECT_NEAR(rounds[1], 5 * 94 / 2.0, 2);
  EXPECT_NEAR(rounds[2], 5 * 94 / 4.0, 2);
}

// It stays away long enough for a sum without it, also where threads are stopped meanwhile.
class CollLostShare : public CollShares {
 protected:
  void settings() override {
    CollShares::settings();
    set("NCCL_SLIME_SWITCH_RETRY", "5");
  }
};
INSTANTIATE_TEST_SUITE_P(Net, CollLostShare, testing::Values(8));

// The others keep their jobs, and take what it took, until it is back.
TEST_P(CollLostShare, OnlyTheOneThatIsLostIsLeft) {
  constexpr uint64_t kOfASum = 2 * 94;  // contributions
  const auto others = [&] { return contributions(*second_) + contributions(*third_); };
  const auto rest = [&] {
    const uint64_t before = others();
    sum();
    return others() - before;
  };
  sum();
  EXPECT_NEAR(static_cast<double>(rest()), kOfASum * 3 / 4.0, 4);
  const auto second = job_on(*second_)["job"], third = job_on(*third_)["job"];
  ASSERT_NO_FATAL_FAILURE(fence(*switch_));
  ASSERT_NO_FATAL_FAILURE(sum_until("going on without this switch"));
  EXPECT_TRUE(wait_until([&] { return rest() == kOfASum || HasFatalFailure(); }));
  ASSERT_NO_FATAL_FAILURE(sum_until("on the switch at " + switch_->address() + " again"));
  EXPECT_TRUE(wait_until([&] { return rest() < kOfASum || HasFatalFailure(); }));
  EXPECT_EQ(job_on(*second_)["job"], second);
  EXPECT_EQ(job_on(*third_)["job"], third);
}

// Those of one rank; those of the other rank start when the move is over there too, most likely.
TEST_P(CollShares, OperationsThatStartInAMove) {
  constexpr size_t kOperations = 60, kPart = kElements / kOperations;
  fill();
  ASSERT_NO_FATAL_FAILURE(fence(*switch_));
  std::vector<void*> open[2];
  for (size_t i = 0; i < kOperations; ++i) {
    open[0].push_back(start(ranks_[0], call_of(ranks_[0], i * kPart, kPart)));
    int done = 0;
    EXPECT_EQ(coll_.test(open[0][0], &done, nullptr), nccl::kSuccess);
    ASSERT_EQ(done, 0) << "the other rank has not begun";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(wait_until([&] {
    int done = 0;
    EXPECT_EQ(coll_.test(open[0][0], &done, nullptr), nccl::kSuccess);
    return Log::text().find("going on without this switch") != std::string::npos;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (size_t i = 0; i < kOperations; ++i) {
    open[1].push_back(start(ranks_[1], call_of(ranks_[1], i * kPart, kPart)));
  }
  for (size_t i = 0; i < kOperations; ++i) {
    ASSERT_TRUE(wait_for(open[0][i], open[1][i])) << i << Log::text();
  }
  EXPECT_TRUE(has_sums(ranks_[0]) && has_sums(ranks_[1]));
}

// The result does not depend on how an operation is cut, nor on which switch or rank sums it up.
TEST_P(CollShares, FloatsHaveTheSameBits) {
  std::mt19937 random(3);
  std::normal_distribution<float> numbers(0, 1e3);
  for (Rank& rank : ranks_) {
    for (size_t i = 0; i < kElements; ++i) {
      const float number = numbers(random) * static_cast<float>(1u << i % 24);
      std::memcpy(&rank.memory[i], &number, sizeof number);
    }
  }
  const auto reduce = [&] {
    void* open[2];
    for (size_t i = 0; i < 2; ++i) {
      AllreduceCall call = call_of(ranks_[i]);
      call.type = nccl::kFloat32;
      open[i] = start(ranks_[i], call);
    }
    EXPECT_TRUE(wait_for(open[0], open[1])) << Log::text();
    const auto from = ranks_[0].memory.begin() + kElements;
    return std::vector<int32_t>(from, from + kElements);
  };
  const auto with_all = reduce();
  EXPECT_EQ(reduce(), with_all) << "turns are taken elsewhere";
  for (const LocalSwitch* one : {third_.get(), second_.get(), switch_.get()}) {
    ASSERT_NO_FATAL_FAILURE(fence(*one));
    EXPECT_EQ(reduce(), with_all);
    EXPECT_EQ(reduce(), with_all);
  }
}

TEST_P(CollSeveral, GoOnWithoutOneThatIsLostAndWithItWhenItIsBack) {
  const std::string address = switch_->address();
  for (int round = 0; round < 2; ++round) {
    Log::clear();
    sum();
    switch_.reset();
    ASSERT_NO_FATAL_FAILURE(sum_until(address + ": going on without this switch"));
    expect_used(*second_);
    switch_ = switch_at(address);
    ASSERT_NO_FATAL_FAILURE(sum_until("on the switch at " + address + " again"));
    expect_used(*switch_);
  }
}

// The switch is lost after one rank has started operations that the other has not.
TEST_P(CollSeveral, RanksThatAreBehindSpreadAsTheOthersDid) {
  constexpr size_t kPart = kElements / 3;
  fill();
  switch_.reset();
  void* open[2][3];
  for (size_t i = 0; i < 3; ++i) {
    open[0][i] = start(ranks_[0], call_of(ranks_[0], i * kPart, kPart));
  }
  ASSERT_TRUE(wait_until([&] {
    int done = 0;
    EXPECT_EQ(coll_.test(open[0][0], &done, nullptr), nccl::kSuccess);
    return done != 0 || Log::text().find("going on without this switch") != std::string::npos;
  })) << Log::text();
  for (size_t i = 0; i < 3; ++i) {
    open[1][i] = start(ranks_[1], call_of(ranks_[1], i * kPart, kPart));
  }
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(wait_for(open[0][i], open[1][i])) << Log::text();
  EXPECT_TRUE(has_sums(ranks_[0]) && has_sums(ranks_[1]));
}

TEST_P(CollSeveral, TheRanksSumUpWhenAllAreLost) {
  sum();
  switch_.reset();
  second_.reset();
  third_.reset();
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(sum());
}

class CollOptional : public CollSwitch {
 protected:
  void settings() override {
    CollSwitch::settings();
    set("NCCL_SLIME_SWITCH_OPTIONAL", "1");
  }
  std::string switches() const override {
    return test::unused_address() + "," + switch_->address();
  }
};
INSTANTIATE_TEST_SUITE_P(Net, CollOptional, testing::Values(8));

TEST_P(CollOptional, DoesWithoutThoseThatCannotBeHad) {
  const uint64_t before = contributions(*switch_);
  sum();
  EXPECT_GT(contributions(*switch_), before);
  EXPECT_EQ(jobs_on(*switch_)[0]["share"], 2);
}

class CollMissing : public CollPair {};
INSTANTIATE_TEST_SUITE_P(Net, CollMissing, testing::Values(8));

TEST_P(CollMissing, OneMissingSwitchFailsAllRanks) {
  const LocalSwitch well;
  const std::string missing = test::unused_address();
  set("NCCL_SLIME_SWITCH", (well.address() + "," + missing).c_str());
  init();
  connect();
  for (const Rank& rank : ranks_) EXPECT_NE(rank.connected, nccl::kSuccess);
  EXPECT_NE(Log::text().find(missing), std::string::npos) << Log::text();
  EXPECT_TRUE(wait_until([&] { return jobs_on(well).empty(); })) << "what it gave is given back";
  finalize_both();
}

}  // namespace
}  // namespace slime::boundary
