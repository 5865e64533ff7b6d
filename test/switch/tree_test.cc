// Jobs on a tree of switches: a root and leaves, controllers with a virtual clock and switches
// without packets. The leaves' questions are carried to the root by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch/controller/controller.h"
#include "switch/core/slots.h"
#include "test/switch/control_support.h"

namespace slime::net {
namespace {

using control::JobGrant;
using control::JobState;
using control::JoinTree;
using control::Message;
using control::Refusal;
using control::Refused;
using control::State;
using control::TreeWait;
using test::kMs;
using test::kSecond;
using testing::HasSubstr;

const SocketAddress kRootControl = SocketAddress::parse("127.0.0.9:28900").value();

struct Node {
  test::FakeDriver driver;
  std::unique_ptr<Controller> controller;
};

class TreeTest : public testing::Test {
 protected:
  static constexpr uint64_t kTree = 77;

  void SetUp() override {
    start_root(1);
    for (uint32_t i = 0; i < 3; ++i) {
      Node& leaf = leaves_[i];
      leaf.driver.shape_.address = leaf_address(i);
      restart(leaf, {.max_jobs = 4, .seed = 10 + i, .parent = kRootControl});
    }
  }
  void start_root(uint64_t seed) {
    root_.driver.shape_.address = SocketAddress::parse("127.0.0.9:28880").value();
    root_.driver.jobs.clear();
    restart(root_, {.max_jobs = 4, .seed = seed});
  }
  void restart(Node& node, ControllerOptions options) {
    node.controller = std::make_unique<Controller>(node.driver, std::move(options), clock_);
  }
  static SocketAddress leaf_address(uint32_t leaf) {
    return SocketAddress::parse("127.0.1." + std::to_string(leaf + 1) + ":28880").value();
  }
  static JoinTree part(uint32_t branch, uint32_t branches = 2, int workers = 2) {
    JoinTree join{.tree = kTree,
                  .contributors = branches * static_cast<uint32_t>(workers),
                  .workers = static_cast<uint32_t>(workers),
                  .branches = branches,
                  .branch = branch,
                  .shards = 0,
                  .part = test::wanted(workers)};
    for (size_t i = 0; i < join.part.children.size(); ++i) {
      join.part.children[i].set_port(static_cast<uint16_t>(9000 + 100 * branch + i));
    }
    return join;
  }
  Message ask(uint32_t leaf, const Message& request) {
    return leaves_[leaf].controller->handle(request);
  }
  // What all leaves have to ask is asked; a root that is not there does not answer.
  void talk() {
    for (Node& leaf : leaves_) {
      while (auto asked = leaf.controller->leaf().next_question()) {
        if (root_well_) {
          leaf.controller->leaf().on_answer(*asked, root_.controller->handle(*asked));
        } else {
          leaf.controller->leaf().on_failure(*asked,
                                             make_error(Status::kRemote, 0, "nobody listens"));
        }
      }
    }
  }
  void pass(uint64_t ns) {
    for (const uint64_t end = clock_.now_ns() + ns; clock_.now_ns() < end;) {
      clock_.pass(std::min<uint64_t>(100 * kMs, end - clock_.now_ns()));
      talk();
      for (Node& leaf : leaves_) leaf.controller->expire(clock_.now_ns());
      root_.controller->expire(clock_.now_ns());
    }
  }
  void settle() { pass(300 * kMs); }  // every leaf asks, and asks again
  JobGrant granted(uint32_t leaf, const JoinTree& join) {
    const Message answer = ask(leaf, join);
    const auto* grant = std::get_if<JobGrant>(&answer);
    const auto* refused = std::get_if<Refused>(&answer);
    EXPECT_NE(grant, nullptr) << (refused != nullptr ? refused->text : "still waits");
    return grant != nullptr ? *grant : JobGrant{};
  }
  Refused refused(uint32_t leaf, const JoinTree& join) {
    const Message answer = ask(leaf, join);
    const auto* refused = std::get_if<Refused>(&answer);
    EXPECT_NE(refused, nullptr);
    return refused != nullptr ? *refused : Refused{};
  }
  // Two leaves of two workers; who asked at leaf 0 and leaf 1 and what they got.
  std::array<JobGrant, 2> make_job() {
    for (uint32_t i : {0, 1}) (void)ask(i, part(i));
    settle();
    return {granted(0, part(0)), granted(1, part(1))};
  }
  State beat(uint32_t leaf, const JobGrant& grant) {
    return std::get<JobState>(ask(leaf, control::Heartbeat{grant.job})).state;
  }
  size_t jobs_of(uint32_t leaf) const { return leaves_[leaf].driver.jobs.size(); }

  test::ManualClock clock_;
  Node root_;
  bool root_well_ = true;
  std::array<Node, 3> leaves_;
};

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
  // Who comes too late hears why; later all is forgotten.
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

TEST_F(TreeTest, ALeafThatCannotDoItGivesTheJobBack) {
  for (uint32_t i : {0, 1}) (void)ask(i, part(i));
  leaves_[1].driver.broken = true;
  settle();
  EXPECT_THAT(refused(1, part(1)).text, HasSubstr("the switch is on fire"));
  EXPECT_TRUE(root_.driver.jobs.empty());
  pass(11 * kSecond);
  EXPECT_EQ(jobs_of(0), 0u);
}

TEST_F(TreeTest, FlatJobsAndTreesDoNotShareNumbers) {
  const auto grants = make_job();
  const Message flat = ask(0, test::wanted());
  EXPECT_LT(std::get<JobGrant>(flat).job.job, control::kFirstTreeJob);
  EXPECT_GE(grants[0].job.job, control::kFirstTreeJob);
  EXPECT_LT(std::get<JobGrant>(root_.controller->handle(test::wanted())).job.job,
            control::kFirstTreeJob);
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
