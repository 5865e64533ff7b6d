// A switch that goes away and comes back while two ranks sum up.
#include "test/boundary/support/coll_switch.h"
#include "test/support/unused_address.h"

namespace slime::boundary {
namespace {

class CollReturn : public CollSwitch {
 protected:
  // It comes back to where it was, so nobody else may have its port meanwhile.
  CollReturn() { switch_ = switch_at(test::unused_address()); }
  void settings() override {
    set("NCCL_SLIME_SWITCH_TIMEOUT", "1");
    set("NCCL_SLIME_SWITCH_RETRY", "0.1");
  }
};
// The version makes no difference.
INSTANTIATE_TEST_SUITE_P(Net, CollReturn, testing::Values(8));

TEST_P(CollReturn, IsUsedAgainAsOftenAsItComes) {
  const std::string address = switch_->address();
  for (int round = 0; round < 2; ++round) {
    Log::clear();
    sum();
    switch_.reset();
    ASSERT_NO_FATAL_FAILURE(sum_until("going on without the switch"));
    sum();
    switch_ = switch_at(address);
    ASSERT_NO_FATAL_FAILURE(sum_until("on the switch at " + address + " again"));
    // It carries the sums, unless it is too busy for a second and is left once more.
    uint64_t before = 0, after = 0;
    EXPECT_TRUE(wait_until([&] {
      before = contributions(*switch_);
      sum();
      after = contributions(*switch_);
      return after > before || HasFatalFailure();
    })) << before
        << " contributions before, and after " << after;
  }
}

// The members go their own ways while rank 0 has a new job already: nothing stays behind.
TEST_P(CollReturn, ClosesWithoutItsSwitch) {
  switch_.reset();
  ASSERT_NO_FATAL_FAILURE(sum_until("going on without the switch"));
}

class CollDamaged : public CollReturn {
 protected:
  // The housekeeper may bring the members back to the switch before the test begins.
  bool keeps_log() const override { return true; }
  CollDamaged() { switch_ = std::make_unique<LocalSwitch>(LocalSwitchOptions{.damaged = 1}); }
};
INSTANTIATE_TEST_SUITE_P(Net, CollDamaged, testing::Values(8));

// The damaged contribution is one of connect's trial, whose other sums come back right.
TEST_P(CollDamaged, TrialIsEndedByTheRanks) {
  ASSERT_NO_FATAL_FAILURE(sum_until("on the switch at " + switch_->address() + " again"));
  ASSERT_NO_FATAL_FAILURE(sum());
}

}  // namespace
}  // namespace slime::boundary
