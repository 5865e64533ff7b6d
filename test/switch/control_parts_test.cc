// The parts of the controller by themselves: admission, jobs and trees that wait for members.
#include "switch/controller/tree.h"
#include "switch/core/slots.h"
#include "test/switch/control_support.h"

namespace slime::net {
namespace {

using control::JobGrant;
using control::Message;
using control::Refusal;
using control::Refused;
using test::kSecond;

class ControlParts : public testing::Test {
 protected:
  Job make(uint16_t number, uint64_t tree = 0) {
    Job job = jobs_.prepare(test::wanted(), grant_, {number, 1}).value();
    job.tree = tree;
    return job;
  }
  static control::JoinTree part(uint64_t tree) {
    return {.tree = tree,
            .contributors = 4,
            .workers = 2,
            .branches = 2,
            .branch = 0,
            .shards = 0,
            .part = test::wanted()};
  }

  test::FakeDriver driver_;
  test::ManualClock clock_;
  ControllerOptions options_{.max_jobs = 2, .lease_ns = 10 * kSecond, .seed = 1};
  ControlCounters counters_;
  Admission admission_{driver_.shape_, 2, {.max_jobs = 1, .max_slot_bytes = UINT64_MAX}, {}};
  Jobs jobs_{driver_, options_, clock_, counters_};
  PendingTrees trees_{clock_, counters_};
  const Grant grant_{16, 64, 1, Slots::bytes_for(16, 64)};
};

TEST_F(ControlParts, AdmissionLooksAtWhatIsInUseAndKeepsNothing) {
  SwitchUsage usage;
  EXPECT_EQ(admission_.admit(test::wanted(), usage)->slots, 16u);
  EXPECT_EQ(admission_.admit(test::wanted(), usage)->slots, 16u);
  usage.add("physics", 1);
  EXPECT_EQ(admission_.admit(test::wanted(), usage).error().why, Refusal::kQuota);
  usage.add("biology", 1);
  EXPECT_EQ(admission_.admit(test::wanted(), usage).error().why, Refusal::kMemory);
  admission_.set_draining(true);
  EXPECT_EQ(admission_.admit(test::wanted(), {}).error().why, Refusal::kDraining);
}

TEST_F(ControlParts, AQuotaOfATenantComesBeforeThatOfTheOthers) {
  admission_.set_quotas({}, {{"physics", {.max_jobs = 5, .max_slot_bytes = UINT64_MAX}}});
  EXPECT_EQ(admission_.quota_of("physics").max_jobs, 5u);
  EXPECT_EQ(admission_.quota_of("biology").max_jobs, 0u);
}

TEST_F(ControlParts, ARootsJobLivesAsLongAsEveryLeafRenewsIt) {
  Job job = make(control::kFirstTreeJob, 7);
  job.spec.children_are_switches = true;
  job.leaf_ids = {control::JobId{std::byte{1}}, control::JobId{std::byte{2}}};
  job.leaf_until_ns.assign(2, job.lease_until_ns);
  ASSERT_TRUE(std::holds_alternative<JobGrant>(jobs_.install(std::move(job))));
  Job* held = jobs_.find_tree(7);
  ASSERT_NE(held, nullptr);
  const uint64_t first = held->lease_until_ns;
  clock_.pass(kSecond);
  jobs_.renew(*held, control::JobId{std::byte{1}});
  EXPECT_EQ(held->lease_until_ns, first) << "the other leaf has not renewed it";
  jobs_.renew(*held, control::JobId{std::byte{2}});
  EXPECT_EQ(held->lease_until_ns, first + kSecond);
}

TEST_F(ControlParts, AnEndedJobCannotBeNamedAndKeepsItsMemory) {
  ASSERT_TRUE(std::holds_alternative<JobGrant>(jobs_.create(test::wanted(), grant_)));
  const control::JobRef ref = jobs_.all().begin()->second.ref;
  driver_.broken = true;
  jobs_.remove(ref.job);
  EXPECT_EQ(jobs_.find(ref, {}), nullptr);
  EXPECT_EQ(usage_of(jobs_, trees_).slot_bytes, grant_.slot_bytes);
  driver_.broken = false;
  jobs_.expire(jobs_.next_expiry_ns());
  EXPECT_TRUE(jobs_.all().empty());
  EXPECT_EQ(counters_.jobs_expired.get(), 0u) << "its workers had closed it";
}

TEST_F(ControlParts, WhatTheRootMustBeToldIsBounded) {
  for (uint16_t i = 1; i <= 3; ++i) jobs_.close_at_root({.id = {}, .job = i, .generation = 0});
  EXPECT_EQ(jobs_.next_to_close()->job, 2u) << "there are two jobs at most";
  EXPECT_EQ(jobs_.next_to_close()->job, 3u);
  EXPECT_FALSE(jobs_.has_to_close());
}

TEST_F(ControlParts, ATreeHoldsNoRoomWhileAJobIsMadeOfIt) {
  trees_.begin(part(7), kSecond).reserved = grant_;
  EXPECT_EQ(usage_of(jobs_, trees_).jobs, 1u);
  const auto refused = trees_.complete(7, [&](PendingTree&) {
    EXPECT_EQ(usage_of(jobs_, trees_).jobs, 0u);
    return std::optional(Refused{Refusal::kBusy, "not now"});
  });
  ASSERT_TRUE(refused);
  ASSERT_NE(trees_.find(7), nullptr);
  EXPECT_EQ(trees_.find(7)->failed->text, "not now");
  EXPECT_EQ(usage_of(jobs_, trees_).jobs, 0u) << "a failed tree holds nothing";
  EXPECT_EQ(trees_.count_of("physics"), 1u) << "but is remembered";
}

TEST_F(ControlParts, ATreeFailsAtItsDeadlineAndIsForgottenLater) {
  trees_.begin(part(7), kSecond);
  trees_.expire(clock_.now_ns());
  EXPECT_FALSE(trees_.find(7)->failed);
  clock_.pass(kSecond);
  trees_.expire(clock_.now_ns());
  EXPECT_THAT(trees_.find(7)->failed->text, testing::HasSubstr("branch 0, 1"));
  trees_.expire(trees_.next_expiry_ns());
  EXPECT_EQ(trees_.find(7), nullptr);
}

}  // namespace
}  // namespace slime::net
