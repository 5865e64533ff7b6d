// A switch that goes away and comes back while two ranks sum up.
#include <slime/switch_client.h>

#include <chrono>
#include <cstdlib>

#include "test/boundary/coll_switch.h"
#include "test/support/unused_address.h"

namespace slime::boundary {
namespace {

class CollReturn : public CollSwitch {
 protected:
  // It comes back to where it was, so nobody else may have its port meanwhile.
  CollReturn() { switch_ = std::make_unique<LocalSwitch>(false, test::unused_address()); }
  void settings() override {
    set("NCCL_SLIME_SWITCH_TIMEOUT", "1");
    set("NCCL_SLIME_SWITCH_RETRY", "0.1");
  }
  void sum() {
    fill();
    for (Rank& rank : ranks_) std::fill_n(&rank.memory[kElements], kElements, 0);
    void* const first = start(ranks_[0], call_of(ranks_[0]));
    void* const second = start(ranks_[1], call_of(ranks_[1]));
    ASSERT_TRUE(wait_for(first, second)) << Log::text();
    ASSERT_TRUE(has_sums(ranks_[0]) && has_sums(ranks_[1]));
  }
  // Of all its jobs, as it says itself.
  uint64_t contributions() const {
    const auto address = SocketAddress::parse(switch_->address()).value();
    auto client = SwitchClient::open(address, SecretKey(), 5'000'000'000);
    const auto report = client ? (*client)->report(true, 5'000'000'000) : std::string();
    constexpr std::string_view kName = "\"contributions\":";
    const size_t at = report ? report->find(kName) : std::string::npos;
    return at == std::string::npos ? 0 : std::strtoull(&(*report)[at + kName.size()], nullptr, 10);
  }
  // Sums up until the log says so.
  void sum_until(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (Log::text().find(text) == std::string::npos) {
      ASSERT_NO_FATAL_FAILURE(sum());
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "no '" << text << "' in\n" << Log::text();
    }
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
    switch_ = std::make_unique<LocalSwitch>(false, address);
    ASSERT_NO_FATAL_FAILURE(sum_until("on the switch at " + address + " again"));
    // It carries the sums, unless it is too busy for a second and is left once more.
    uint64_t before = 0, after = 0;
    EXPECT_TRUE(wait_until([&] {
      before = contributions();
      sum();
      after = contributions();
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

}  // namespace
}  // namespace slime::boundary
