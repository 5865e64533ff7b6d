// Trees of switches that are impossible, or that do not become complete: which leaf gets a refusal,
// with which reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/switch/tree_support.h"

namespace slime::net {
namespace {

using control::Refusal;
using control::TreeWait;
using test::kSecond;
using testing::HasSubstr;

TEST_F(TreeTest, AFormatThatOneNeedsAndAnotherLacksIsRefused) {
  leaves_[0].driver.shape_.formats = sap::kWordFormats;
  restart(leaves_[0], {.seed = 2, .parent = kRootControl});
  std::array<JoinTree, 2> parts = {part(0), part(1)};
  for (JoinTree& one : parts) one.part.formats_wanted = sap::kKnownFormats;
  parts[1].part.formats_least = 0b101;
  for (uint32_t i : {0, 1}) (void)ask(i, parts[i]);
  settle();
  for (uint32_t i : {0, 1}) {
    EXPECT_THAT(refused(i, parts[i]).text,
                HasSubstr("needs the formats i16 too, and not every leaf of the tree"));
  }
  EXPECT_TRUE(root_.driver.jobs.empty());
}

TEST_F(TreeTest, ALeafWithFewerLanesThanOthersNeedIsRefused) {
  leaves_[1].driver.shape_.max_lanes = 32;
  restart(leaves_[1], {.seed = 3, .parent = kRootControl});
  (void)ask(0, part(0));
  JoinTree narrow = part(1);
  narrow.part.lanes_least = 8;
  (void)ask(1, narrow);
  settle();
  for (uint32_t i : {0, 1}) {
    EXPECT_THAT(refused(i, part(i)).text, HasSubstr("slots of 32 lanes only"));
  }
  EXPECT_TRUE(root_.driver.jobs.empty());
}

TEST_F(TreeTest, ALeafRefusesAGrantBeyondWhatItAskedFor) {
  const auto refusal_of = [&](auto change) {
    restart(leaves_[0], {.seed = 2, .parent = kRootControl});
    (void)ask(0, part(0));
    const auto asked = leaves_[0].controller->leaf().next_question();
    const auto& join = std::get<JoinTree>(*asked);
    JobGrant grant{.job = {.id = {}, .job = control::kFirstTreeJob, .generation = 1},
                   .token = 1,
                   .address = root_.driver.shape_.address,
                   .shards = join.shards,
                   .slots = join.part.slots_wanted,
                   .lanes = join.part.lanes_wanted,
                   .formats = join.part.formats_wanted,
                   .lease_ms = 1000};
    change(grant);
    leaves_[0].controller->leaf().on_answer(*asked, grant);
    const Message answer = ask(0, part(0));
    const auto* refused = std::get_if<Refused>(&answer);
    leaves_[0].driver.jobs.clear();
    return refused != nullptr ? refused->text : std::string("none");
  };
  EXPECT_EQ(refusal_of([](JobGrant&) {}), "none");
  EXPECT_THAT(refusal_of([](JobGrant& g) { ++g.slots; }), HasSubstr("more than was asked for"));
  EXPECT_THAT(refusal_of([](JobGrant& g) { ++g.lanes; }), HasSubstr("more than was asked for"));
  EXPECT_THAT(refusal_of([](JobGrant& g) { g.formats |= 2; }), HasSubstr("more than was asked"));
  EXPECT_THAT(refusal_of([](JobGrant& g) { g.shards = 1; }), HasSubstr("number of shards"));
  EXPECT_THAT(refusal_of([](JobGrant& g) { g.job.job = 7; }), HasSubstr("not one of trees"));
}

TEST_F(TreeTest, TheTreeFailsIfALeafNeverJoins) {
  (void)ask(0, part(0, 3));
  (void)ask(1, part(1, 3));
  pass(7 * kSecond);
  EXPECT_TRUE(std::holds_alternative<TreeWait>(ask(0, part(0, 3))));
  EXPECT_EQ(leaves_[0].controller->usage().jobs, 1u) << "room is kept";
  pass(2 * kSecond);
  for (uint32_t i : {0, 1}) {
    EXPECT_THAT(refused(i, part(i, 3)).text, HasSubstr("the switch of branch 2 did not join"));
    EXPECT_EQ(leaves_[i].controller->usage().jobs, 0u);
  }
  EXPECT_EQ(root_.controller->counters().trees_failed.get(), 1u);
  // A leaf that asks too late gets the reason. After 20 s more the switches have dropped the tree.
  (void)ask(2, part(2, 3));
  settle();
  EXPECT_THAT(refused(2, part(2, 3)).text, HasSubstr("branch 2 did not join"));
  pass(20 * kSecond);
  EXPECT_TRUE(root_.controller->pending_trees().empty());
  EXPECT_TRUE(leaves_[0].controller->pending_trees().empty());
}

TEST_F(TreeTest, TheRootsRefusalReachesAllWorkers) {
  restart(root_, {.seed = 1, .default_quota = {.max_jobs = 0, .max_slot_bytes = 0}});
  for (uint32_t i : {0, 1}) (void)ask(i, part(i));
  settle();
  for (uint32_t i : {0, 1}) {
    const Refused why = refused(i, part(i));
    EXPECT_EQ(why.why, Refusal::kQuota);
    EXPECT_THAT(why.text, HasSubstr("the root at 127.0.0.9:28900 refused: tenant physics"));
    EXPECT_EQ(jobs_of(i), 0u);
  }
}

// Trees that only begin count, so that one tenant cannot take the places of others.
TEST_F(TreeTest, TreesThatBeginCountForTheirTenant) {
  restart(root_, {.max_jobs = 8, .seed = 1, .default_quota = {.max_jobs = 2}});
  JoinTree from_leaf = part(0);
  from_leaf.shards = 4;
  from_leaf.part.children = {leaf_address(0)};
  for (uint64_t tree = 1; tree <= 5; ++tree) {
    from_leaf.tree = tree;
    const Message answer = root_.controller->handle(from_leaf);
    const auto* refused = std::get_if<Refused>(&answer);
    ASSERT_EQ(refused != nullptr, tree > 2) << tree;
    if (refused != nullptr) {
      EXPECT_EQ(refused->why, Refusal::kQuota);
    }
  }
  from_leaf.tree = 6;
  from_leaf.part.tenant = "chemistry";
  EXPECT_TRUE(std::holds_alternative<TreeWait>(root_.controller->handle(from_leaf)));
}

TEST_F(TreeTest, ShapesThatCannotBeAreRefused) {
  leaves_[1].driver.shape_.shards = 2;
  restart(leaves_[1], {.seed = 3, .parent = kRootControl});
  (void)ask(1, part(1));
  settle();
  EXPECT_THAT(refused(1, part(1)).text, HasSubstr("2 shards and its root 4"));

  restart(leaves_[2], {.seed = 4});
  EXPECT_THAT(refused(2, part(1)).text, HasSubstr("no parent (parent.control)"));
  restart(leaves_[2], {.seed = 4, .parent = kRootControl});
  JoinTree from_leaf = part(1);
  from_leaf.shards = 4;
  from_leaf.part.children = {leaf_address(0)};
  EXPECT_THAT(refused(2, from_leaf).text, HasSubstr("trees have two levels"));

  (void)ask(0, part(0));
  EXPECT_THAT(refused(0, part(1)).text, HasSubstr("already, as another branch"));
  from_leaf.contributors = 5;
  from_leaf.part.children = {leaf_address(2)};
  settle();
  const Message odd = root_.controller->handle(from_leaf);
  EXPECT_THAT(std::get<Refused>(odd).text, HasSubstr("different numbers of switches or workers"));
}

TEST_F(TreeTest, WorkersThatAreMissingOrTwiceAreNoticed) {
  JoinTree short_of_one = part(1);
  short_of_one.workers = 1;
  short_of_one.part.children.resize(1);
  (void)ask(0, part(0));
  (void)ask(1, short_of_one);
  settle();
  EXPECT_THAT(refused(0, part(0)).text, HasSubstr("3 workers together and should have 4"));
}

TEST_F(TreeTest, AnAddressThatIsTwoLeavesIsRefused) {
  JoinTree one = part(0), two = part(1);
  for (JoinTree* join : {&one, &two}) {
    join->shards = 4;
    join->part.children = {leaf_address(0)};
  }
  (void)root_.controller->handle(one);
  const Message answer = root_.controller->handle(two);
  EXPECT_THAT(std::get<Refused>(answer).text, HasSubstr("is there twice"));
}

TEST_F(TreeTest, ALeafThatCannotDoItGivesTheJobBack) {
  for (uint32_t i : {0, 1}) (void)ask(i, part(i));
  leaves_[1].driver.broken = true;
  settle();
  EXPECT_THAT(refused(1, part(1)).text, HasSubstr("the switch is on fire"));
  EXPECT_TRUE(root_.driver.jobs.empty());
  pass(11 * kSecond);
  EXPECT_EQ(jobs_of(0), 0u);
}

TEST_F(TreeTest, PendingTreesAreBounded) {
  size_t waiting = 0;
  for (uint64_t tree = 1; tree <= 20; ++tree) {
    JoinTree join = part(0);
    join.tree = tree;
    waiting += std::holds_alternative<TreeWait>(ask(0, join));
    join.shards = 4;
    join.part.children = {leaf_address(0)};
    (void)root_.controller->handle(join);
  }
  EXPECT_EQ(waiting, 4u) << "as many as jobs";
  EXPECT_EQ(root_.controller->pending_trees().size(), 4u);
}

}  // namespace
}  // namespace slime::net
