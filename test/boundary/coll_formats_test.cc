// Switches that do not add up all formats.
#include "test/boundary/support/coll_switch.h"
#include "test/support/odd_switch.h"
#include "test/support/unused_address.h"

namespace slime::boundary {
namespace {

// The second adds up 32-bit integers only; in all else both are alike. Their leases are short, as
// the test waits for the end of one.
class CollWords : public CollSwitch {
 protected:
  static constexpr uint64_t kLeaseNs = 10'000'000'000;
  CollWords() { switch_ = std::make_unique<LocalSwitch>(LocalSwitchOptions{.lease_ns = kLeaseNs}); }
  std::string switches() const override { return switch_->address() + "," + second_->address(); }
  void sum_bytes(uint8_t shift) {
    void* open[2];
    for (size_t i = 0; i < 2; ++i) {
      Rank& rank = ranks_[i];
      for (size_t at = 0; at < kElements; ++at) {
        bytes_of(rank)[at] = static_cast<uint8_t>(at * (i + 3) + shift);
      }
      AllreduceCall call = call_of(rank);
      call.type = nccl::kUint8;
      open[i] = start(rank, call);
    }
    ASSERT_TRUE(wait_for(open[0], open[1])) << Log::text();
    for (Rank& rank : ranks_) {
      const uint8_t* const sums = bytes_of(rank) + kElements * sizeof(int32_t);
      for (size_t at = 0; at < kElements; ++at) {
        ASSERT_EQ(sums[at], static_cast<uint8_t>(at * 7 + 2u * shift)) << at;
      }
    }
  }
  static uint8_t* bytes_of(Rank& rank) { return reinterpret_cast<uint8_t*>(rank.memory.data()); }

  const nlohmann::json words_ = {"i32", "u32"};
  std::unique_ptr<LocalSwitch> second_ = std::make_unique<LocalSwitch>(
      LocalSwitchOptions{.formats = sap::kWordFormats, .lease_ns = kLeaseNs});
};
// The version makes no difference.
INSTANTIATE_TEST_SUITE_P(Net, CollWords, testing::Values(8));

// Bytes travel as words over both, also when the switch that has all formats was lost and is back.
TEST_P(CollWords, AJobHasTheFormatsThatAllItsSwitchesHave) {
  ASSERT_NO_FATAL_FAILURE(sum_bytes(1));
  for (const LocalSwitch* one : {switch_.get(), second_.get()}) {
    const auto job = job_on(*one);
    EXPECT_EQ(job["formats"], words_);
    EXPECT_GT(job["counters"]["rounds"], 8) << "rounds of these sums, besides the trial of connect";
  }
  ASSERT_NO_FATAL_FAILURE(fence(*switch_));
  uint8_t shift = 1;
  EXPECT_TRUE(wait_until([&] {
    sum_bytes(++shift);
    return Log::text().find("on the switch at") != std::string::npos || HasFatalFailure();
  }));
  ASSERT_NO_FATAL_FAILURE(sum_bytes(++shift));
  EXPECT_TRUE(wait_until([&] { return jobs_on(*switch_).size() == 1; })) << "the old job ends";
  EXPECT_EQ(job_on(*switch_)["formats"], words_);
}

// No switch is there when the job begins.
class CollLate : public CollSwitch {
 protected:
  CollLate() { switch_.reset(); }
  void settings() override {
    set("NCCL_SLIME_SWITCH_OPTIONAL", "1");
    set("NCCL_SLIME_SWITCH_RETRY", "0.1");
  }
  std::string switches() const override { return address_; }
  const std::string address_ = test::unused_address();
};
INSTANTIATE_TEST_SUITE_P(Net, CollLate, testing::Values(8));

TEST_P(CollLate, ASwitchWithWordsOnlyTakesTheJob) {
  ASSERT_NO_FATAL_FAILURE(sum());
  switch_ = std::make_unique<LocalSwitch>(
      LocalSwitchOptions{.listen = address_, .formats = sap::kWordFormats});
  ASSERT_NO_FATAL_FAILURE(sum_until("on the switch at " + address_ + " again"));
}

class CollOdd : public CollPair {};
INSTANTIATE_TEST_SUITE_P(Net, CollOdd, testing::Values(8));

TEST_P(CollOdd, AJobThatWasNotAskedForFailsAllRanks) {
  const control::JobGrant small{.job = {},
                                .token = 1,
                                .address = SocketAddress::parse("127.0.0.1:9").value(),
                                .slots = 1,
                                .lanes = 16,
                                .formats = sap::kWordFormats,
                                .lease_ms = 1000};
  const auto with = [&](auto change) {
    control::JobGrant grant = small;
    change(grant);
    return grant;
  };
  for (const control::JobGrant& grant :
       {with([](auto& g) { g.slots = sap::kMaxSlots; }), with([](auto& g) { g.lanes = 15; }),
        with([](auto& g) { g.lanes = sap::kMaxLanes; }), with([](auto& g) { g.formats = 1; })}) {
    const test::OddSwitch odd(grant);
    set("NCCL_SLIME_SWITCH", odd.address().c_str());
    set("NCCL_SLIME_SWITCH_LANES", "1024");
    init();
    connect();
    for (const Rank& rank : ranks_) EXPECT_NE(rank.connected, nccl::kSuccess);
    EXPECT_NE(Log::text().find("is it of this release?"), std::string::npos) << Log::text();
    finalize_both();
    Log::clear();
  }
}

}  // namespace
}  // namespace slime::boundary
