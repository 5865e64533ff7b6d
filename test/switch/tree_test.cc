// Jobs on a tree of switches: what all its switches agree on, what keeps a job, what ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch/core/slots.h"
#include "test/switch/tree_support.h"

namespace slime::net {
namespace {

using control::TreeWait;
using test::kSecond;
using testing::HasSubstr;

TEST_F(TreeTest, OneJobUnderOneNumberAtAllSwitches) {
  EXPECT_TRUE(std::holds_alternative<TreeWait>(ask(0, part(0))));
  pass(kSecond);
  EXPECT_EQ(std::get<TreeWait>(ask(0, part(0))).missing, 0b10u) << "the root told who is missing";
  EXPECT_TRUE(root_.driver.jobs.empty());
  (void)ask(1, part(1));
  settle();
  const JobGrant first = granted(0, part(0)), second = granted(1, part(1));
  EXPECT_GE(first.job.job, control::kFirstTreeJob);
  EXPECT_EQ(first.job.job, second.job.job);
  EXPECT_EQ(first.job.generation, second.job.generation);
  EXPECT_EQ(first.token, second.token);
  EXPECT_EQ(first.address, leaf_address(0));
  const JobSpec& top = root_.driver.jobs.at(first.job.job);
  EXPECT_TRUE(top.children_are_switches);
  EXPECT_FALSE(top.parent);
  EXPECT_EQ(top.children, (std::vector{leaf_address(0), leaf_address(1)}));
  EXPECT_EQ(top.generation, first.job.generation);
  EXPECT_EQ(top.token, first.token);
  const JobSpec& below = leaves_[1].driver.jobs.at(first.job.job);
  EXPECT_EQ(below.token, first.token);
  EXPECT_FALSE(below.children_are_switches);
  ASSERT_TRUE(below.parent);
  EXPECT_EQ(below.parent->address, root_.driver.shape_.address);
  EXPECT_EQ(below.parent->child, 1);
  EXPECT_EQ(below.children, part(1).part.children);
}

TEST_F(TreeTest, AllTakeTheLeastThatOneCan) {
  const uint64_t each = Slots::bytes_for(1, 64);
  leaves_[1].driver.shape_.slot_bytes = 5 * each;
  restart(leaves_[1], {.seed = 3, .parent = kRootControl});
  const auto grants = make_job();
  EXPECT_EQ(grants[0].slots, 5u);
  EXPECT_EQ(grants[1].slots, 5u);
  EXPECT_EQ(root_.driver.jobs.begin()->second.slots, 5u);
  EXPECT_EQ(leaves_[0].driver.jobs.begin()->second.slots, 5u);
  EXPECT_EQ(leaves_[0].controller->usage().slot_bytes, 5 * each) << "the rest was given back";
}

// Each switch lacks another format.
TEST_F(TreeTest, AllTakeTheFormatsThatAllHave) {
  const auto without = [](sap::Format format) {
    return sap::kKnownFormats & ~(1u << static_cast<uint32_t>(format));
  };
  root_.driver.shape_.formats = without(sap::Format::kI16);
  start_root(1);
  leaves_[0].driver.shape_.formats = without(sap::Format::kI64);
  restart(leaves_[0], {.seed = 2, .parent = kRootControl});
  leaves_[1].driver.shape_.formats = without(sap::Format::kU8);
  restart(leaves_[1], {.seed = 3, .parent = kRootControl});
  std::array<JoinTree, 2> parts = {part(0), part(1)};
  for (JoinTree& one : parts) one.part.formats_wanted = sap::kKnownFormats;
  for (uint32_t i : {0, 1}) (void)ask(i, parts[i]);
  settle();
  const uint32_t common =
      without(sap::Format::kI16) & without(sap::Format::kI64) & without(sap::Format::kU8);
  for (uint32_t i : {0, 1}) {
    EXPECT_EQ(granted(i, parts[i]).formats, common);
    EXPECT_EQ(leaves_[i].driver.jobs.begin()->second.formats, common);
  }
  EXPECT_EQ(root_.driver.jobs.begin()->second.formats, common);
}

TEST_F(TreeTest, HeartbeatsKeepIt) {
  const auto grants = make_job();
  for (int i = 0; i < 12; ++i) {
    pass(10 * kSecond);
    for (uint32_t leaf : {0, 1}) EXPECT_EQ(beat(leaf, grants[leaf]), State::kAlive);
  }
  EXPECT_EQ(root_.driver.jobs.size(), 1u);
}

TEST_F(TreeTest, AWorkerThatFallsSilentEndsTheWholeTree) {
  const auto grants = make_job();
  for (int i = 0; i < 6; ++i) {
    pass(10 * kSecond);
    (void)beat(0, grants[0]);  // and nobody at leaf 1
  }
  EXPECT_EQ(jobs_of(0), 0u);
  EXPECT_EQ(jobs_of(1), 0u);
  EXPECT_TRUE(root_.driver.jobs.empty());
  EXPECT_EQ(beat(0, grants[0]), State::kGone);
}

TEST_F(TreeTest, ALeafThatFallsSilentEndsTheWholeTree) {
  const auto grants = make_job();
  restart(leaves_[1], {.seed = 99, .parent = kRootControl});  // it forgot everything
  for (int i = 0; i < 5; ++i) {
    pass(10 * kSecond);
    (void)beat(0, grants[0]);
  }
  EXPECT_TRUE(root_.driver.jobs.empty()) << "leaf 0 alone does not keep it";
  EXPECT_EQ(jobs_of(0), 0u);
}

TEST_F(TreeTest, ClosingAtOneLeafClosesAll) {
  const auto grants = make_job();
  EXPECT_TRUE(std::holds_alternative<control::Done>(ask(0, control::CloseJob{grants[0].job})));
  settle();
  EXPECT_TRUE(root_.driver.jobs.empty());
  pass(11 * kSecond);
  EXPECT_EQ(jobs_of(1), 0u);
  EXPECT_TRUE(std::holds_alternative<control::Done>(ask(1, control::CloseJob{grants[1].job})));
}

TEST_F(TreeTest, FencingAnywhereEndsTheTree) {
  for (const bool at_root : {true, false}) {
    const auto grants = make_job();
    Controller& fenced = at_root ? *root_.controller : *leaves_[1].controller;
    const Message answer = fenced.handle(control::Fence{{{}, grants[0].job.job, 0}, true});
    EXPECT_EQ(std::get<JobState>(answer).state, State::kGone);
    pass(11 * kSecond);
    EXPECT_TRUE(root_.driver.jobs.empty());
    for (uint32_t leaf : {0, 1}) {
      EXPECT_EQ(jobs_of(leaf), 0u);
      EXPECT_EQ(beat(leaf, grants[leaf]), State::kGone);
    }
  }
}

TEST_F(TreeTest, ARootThatIsAwayForLongEndsIt) {
  const auto grants = make_job();
  root_well_ = false;
  pass(20 * kSecond);
  for (uint32_t leaf : {0, 1}) EXPECT_EQ(beat(leaf, grants[leaf]), State::kAlive);
  EXPECT_THAT(leaves_[0].controller->leaf().parent_trouble(), HasSubstr("nobody listens"));
  pass(15 * kSecond);
  for (uint32_t leaf : {0, 1}) EXPECT_EQ(jobs_of(leaf), 0u);
  (void)ask(0, part(0));
  settle();
  EXPECT_THAT(refused(0, part(0)).text, HasSubstr("nobody listens"));
}

TEST_F(TreeTest, ARootThatWasStartedAgainGivesItsNumbersAgain) {
  const auto old = make_job();
  start_root(2);
  JoinTree fresh[] = {part(0), part(1)};
  for (uint32_t i : {0, 1}) {
    fresh[i].tree = kTree + 1;
    (void)ask(i, fresh[i]);
  }
  settle();
  const JobGrant grant = granted(0, fresh[0]);
  EXPECT_EQ(grant.job.job, old[0].job.job) << "the old one stands in its way";
  EXPECT_EQ(jobs_of(0), 1u);
  EXPECT_EQ(leaves_[0].driver.jobs.at(grant.job.job).generation, grant.job.generation);
  EXPECT_EQ(beat(0, old[0]), State::kGone);
  EXPECT_EQ(beat(0, grant), State::kAlive);
  pass(11 * kSecond);
  EXPECT_EQ(root_.driver.jobs.size(), 1u);
}

TEST_F(TreeTest, FlatJobsAndTreesDoNotShareNumbers) {
  const auto grants = make_job();
  const Message flat = ask(0, test::wanted());
  EXPECT_LT(std::get<JobGrant>(flat).job.job, control::kFirstTreeJob);
  EXPECT_GE(grants[0].job.job, control::kFirstTreeJob);
  EXPECT_LT(std::get<JobGrant>(root_.controller->handle(test::wanted())).job.job,
            control::kFirstTreeJob);
}

TEST_F(TreeTest, ReportsSayWhereInTheTree) {
  (void)make_job();
  const auto top = nlohmann::json::parse(report_json(*root_.controller, true));
  const auto leaf = nlohmann::json::parse(report_json(*leaves_[1].controller, true));
  EXPECT_EQ(top["jobs"][0]["level"], 1);
  EXPECT_EQ(top["jobs"][0]["parent"], nullptr);
  EXPECT_EQ(leaf["jobs"][0]["level"], 0);
  EXPECT_EQ(leaf["jobs"][0]["parent"], "127.0.0.9:28880");
  EXPECT_EQ(leaf["switch"]["parent"], "127.0.0.9:28900");
  EXPECT_THAT(metrics_text(*leaves_[1].controller),
              HasSubstr("level=\"0\",parent=\"127.0.0.9:28880\"} 2\n"));
  EXPECT_THAT(metrics_text(*leaves_[1].controller), HasSubstr("slime_switch_parent_well 1\n"));
}

}  // namespace
}  // namespace slime::net
