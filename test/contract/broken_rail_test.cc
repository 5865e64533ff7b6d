// The tests of this directory, tested: each broken promise is caught by the check that is for it,
// and a rail that keeps all of them passes the same checks.
#include <gmock/gmock.h>

#include "test/contract/broken_rail.h"
#include "test/contract/checks.h"
#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kIncomplete = "not everything arrived";

struct Case {
  Fault fault;
  bool confirm;
  const char* problem;  // what the check has to say; nullptr: nothing at all
};

class Broken : public ::testing::Test {
 protected:
  void open(Fault fault, bool confirm, bool is_hca = false, bool goes_on = true) {
    const SimWorldOptions options{
        .arrives_unpolled = true, .is_hca = is_hca, .goes_on_after_refusal = goes_on, .seed = 7};
    world_ = make_broken_world(make_sim_world(options), fault);
    pair_ = std::make_unique<Pair>(*world_, PairOptions{confirm});
    ASSERT_TRUE(pair_->connect());
  }
  void TearDown() override { pair_.reset(); }

  static void expect(const Case& expected, const Problems& problems) {
    SCOPED_TRACE(static_cast<int>(expected.fault));
    if (expected.problem == nullptr) {
      EXPECT_THAT(problems, IsEmpty());
    } else {
      EXPECT_THAT(problems, Contains(HasSubstr(expected.problem)));
    }
  }

  Problems problems_of_traffic(Opcode opcode) {
    pair_->transfer(pair_->left, std::vector<uint32_t>(40, 300), opcode);
    const bool all = pair_->run();
    pair_->settle();
    Problems problems = pair_->problems();
    if (!all) problems.emplace_back(kIncomplete);
    return problems;
  }
  Problems problems_of_wrong_key(Opcode opcode) {
    Transfer& ledger = pair_->transfer(pair_->left, {100, 200, 300}, opcode);
    Work bad = ledger.works()[1];
    bad.remote_key ^= 2;
    return refusal_problems(*pair_, ledger, bad);
  }

  std::unique_ptr<World> world_;
  std::unique_ptr<Pair> pair_;
};

TEST_F(Broken, DataChecksCatchEachFault) {
  const Case kCases[] = {
      {Fault::kNone, false, nullptr},
      {Fault::kNone, true, nullptr},
      {Fault::kSpoilsAByte, false, "wrong byte at 299 when it was reported"},
      {Fault::kWritesBeyond, false, "written between works"},
      {Fault::kWritesOutside, false, "written outside the registered range"},
      {Fault::kSpoilsLater, false, "at the end"},
      {Fault::kRepeatsSent, false, "ended twice: kSent, kSent"},
      {Fault::kRepeatsSent, true, "ended twice: kSent, kSent"},
      {Fault::kRepeatsArrived, false, "kArrived twice"},
      {Fault::kLosesSent, false, kIncomplete},
      {Fault::kLosesArrived, true, kIncomplete},
      {Fault::kLosesArrived, true, "was passed by others on an ordered rail, and is lost"},
      {Fault::kMakesUpImmediate, false, "unknown immediate"},
      {Fault::kMakesUpCookie, true, "unknown cookie"},
      {Fault::kMiscountsBytes, false, "kArrived with 301 bytes"},
      {Fault::kSwapsArrivals, false, "was overtaken on an ordered rail"},
      {Fault::kSendsLate, false, "wrong byte at 0 when it was reported"},
      {Fault::kConfirmsItself, true, "confirmed before the peer reported kArrived"},
  };
  for (const Case& each : kCases) {
    open(each.fault, each.confirm);
    expect(each, problems_of_traffic(Opcode::kWriteWithImmediate));
    pair_.reset();
  }
}

TEST_F(Broken, ChecksOfReadsAndSilentWritesCatchEachFault) {
  const struct {
    Case fault;
    Opcode opcode;
  } kCases[] = {
      {{Fault::kNone, false, nullptr}, Opcode::kWrite},
      {{Fault::kNone, true, nullptr}, Opcode::kRead},
      {{Fault::kSpoilsAByte, true, "wrong byte at 299 when it was kSent"}, Opcode::kRead},
      {{Fault::kSpoilsLater, true, "at the end"}, Opcode::kWrite},
      {{Fault::kRepeatsSent, false, "ended twice: kSent, kSent"}, Opcode::kRead},
      {{Fault::kLosesSent, false, kIncomplete}, Opcode::kWrite},
      {{Fault::kConfirmsItself, false, "wrong byte at 0 when it was kSent"}, Opcode::kWrite},
      {{Fault::kConfirmsItself, false, "wrong byte at 0 when it was kSent"}, Opcode::kRead},
      {{Fault::kReportsSilentWrites, false, "kArrived of a read or silent write"}, Opcode::kWrite},
  };
  for (const auto& [fault, opcode] : kCases) {
    open(fault.fault, fault.confirm);
    expect(fault, problems_of_traffic(opcode));
    pair_.reset();
  }
}

TEST_F(Broken, FenceChecksCatchEachFault) {
  const Case kCases[] = {
      {Fault::kNone, false, nullptr},
      {Fault::kNone, true, nullptr},
      {Fault::kWritesThroughFence, false, "written after the fence"},
      {Fault::kReportsAfterFence, false, "arrivals did not come to an end"},
      {Fault::kHidesFailure, false, "the peer never noticed the fence"},
  };
  for (const Case& each : kCases) {
    open(each.fault, each.confirm);
    expect(each, fence_problems(*pair_, 12));
    pair_.reset();
  }
  for (const Case& each : {Case{Fault::kNone, true, nullptr},
                           Case{Fault::kForgetsAtFence, true, "confirmed, but lost"}}) {
    open(each.fault, each.confirm, true);
    expect(each, fence_problems(*pair_, 12));
    pair_.reset();
  }
}

TEST_F(Broken, AccessChecksCatchEachFault) {
  const Case kCases[] = {
      {Fault::kNone, false, nullptr},
      {Fault::kIgnoresKeys, false, "written all the same"},
      {Fault::kHidesFailure, false, "the receiver took it"},
      {Fault::kHidesFailure, true, "the sender never noticed"},
      {Fault::kNamesNobody, false, nullptr},  // has a sentence; the peer's name is not due here
  };
  for (const Case& each : kCases) {
    open(each.fault, each.confirm, false, false);
    expect(each, problems_of_wrong_key(Opcode::kWriteWithImmediate));
    pair_.reset();
  }
}

TEST_F(Broken, ChecksOfRefusalsThatKeepTheChannelCatchEachFault) {
  const Case kCases[] = {
      {Fault::kNone, true, nullptr},
      {Fault::kIgnoresKeys, true, "written all the same"},
      {Fault::kHidesRefusal, true, "the bad work was not refused"},
      {Fault::kLosesRefusal, true, "a work did not end"},
      {Fault::kFailsAfterRefusal, true, "somebody somewhere closed something"},
  };
  for (const Opcode opcode : {Opcode::kWriteWithImmediate, Opcode::kWrite, Opcode::kRead}) {
    for (const Case& each : kCases) {
      open(each.fault, each.confirm);
      expect(each, problems_of_wrong_key(opcode));
      pair_.reset();
    }
  }
}

TEST_F(Broken, CloseChecksCatchEachFault) {
  const Case kCases[] = {
      {Fault::kNone, false, nullptr},
      {Fault::kNone, true, nullptr},
      {Fault::kForgetsWhatItSent, false, "kSent, but lost"},
      {Fault::kNamesNobody, false, "does not name the peer"},
      {Fault::kHidesFailure, false, "the end was not reported"},
      {Fault::kSpoilsAByte, false, "wrong byte"},
  };
  for (const Case& each : kCases) {
    open(each.fault, each.confirm);
    expect(each, close_problems(*pair_, 20));
    pair_.reset();
  }
}

}  // namespace
}  // namespace slime::contract
