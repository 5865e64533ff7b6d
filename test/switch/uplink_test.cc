// A leaf's connection to its root, over TCP on loopback under a virtual clock.
#include "switch/controller/uplink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/switch/control_server.h"

namespace slime::net {
namespace {

using control::JobGrant;
using control::JoinTree;
using control::Refused;
using test::kKey;
using test::kMs;
using test::kSecond;
using testing::HasSubstr;

class UplinkTest : public test::ControlServerFixture {
 protected:
  struct Leaf {
    test::FakeDriver driver;
    std::unique_ptr<Controller> controller;
    std::unique_ptr<Uplink> uplink;
  };
  void start_leaf(Leaf& leaf, uint32_t number, const SecretKey& key, const SocketAddress& parent) {
    leaf.driver.shape_.address =
        SocketAddress::parse("127.0.1." + std::to_string(number + 1) + ":28880").value();
    leaf.controller = std::make_unique<Controller>(
        leaf.driver, ControllerOptions{.seed = number, .parent = parent}, clock_);
    leaf.uplink = std::make_unique<Uplink>(leaf.controller->leaf(),
                                           UplinkOptions{.parent = parent, .key = key}, clock_);
  }
  static JoinTree part(uint32_t branch, uint64_t tree = 5) {
    return {.tree = tree,
            .contributors = 4,
            .workers = 2,
            .branches = 2,
            .branch = branch,
            .shards = 0,
            .part = test::wanted(2)};
  }
  bool turn_all(const std::function<bool()>& done) {
    return turn_until([&] {
      clock_.pass(kMs);
      for (Leaf& leaf : leaves_) {
        if (leaf.uplink) leaf.uplink->run();
      }
      return done();
    });
  }
  bool all_granted(uint64_t tree) {
    bool all = true;
    for (uint32_t i : {0, 1}) {
      const auto answer = leaves_[i].controller->handle(part(i, tree));
      all = std::holds_alternative<JobGrant>(answer) && all;
    }
    return all;
  }
  void start_all() {
    start(kKey);
    for (uint32_t i : {0, 1}) start_leaf(leaves_[i], i, kKey, server_->address());
  }
  std::string refusal(uint32_t leaf) {
    std::string text;
    EXPECT_TRUE(turn_all([&] {
      const auto answer = leaves_[leaf].controller->handle(part(leaf));
      const auto* refused = std::get_if<Refused>(&answer);
      if (refused != nullptr) text = refused->text;
      return refused != nullptr;
    }));
    return text;
  }

  Leaf leaves_[2];
};

TEST_F(UplinkTest, TwoLeavesGetAJobAndKeepIt) {
  start_all();
  EXPECT_EQ(leaves_[0].uplink->descriptor(), -1) << "nothing to ask, no connection";
  EXPECT_EQ(leaves_[0].uplink->timeout_ms(1000), 1000);
  ASSERT_TRUE(turn_all([&] { return all_granted(5); }));
  EXPECT_EQ(driver_.jobs.size(), 1u);
  // The lease at the root is ten seconds.
  const uint64_t until = clock_.now_ns() + 20 * kSecond;
  ASSERT_TRUE(turn_all([&] {
    clock_.pass(50 * kMs);
    return clock_.now_ns() >= until;
  }));
  EXPECT_EQ(driver_.jobs.size(), 1u);
  EXPECT_EQ(counters().connections_late.get(), 0u);
}

TEST_F(UplinkTest, AnIdleConnectionIsClosed) {
  start_all();
  ASSERT_TRUE(turn_all([&] { return all_granted(5); }));
  for (uint32_t i : {0, 1}) {
    const auto grant = std::get<JobGrant>(leaves_[i].controller->handle(part(i)));
    (void)leaves_[i].controller->handle(control::CloseJob{grant.job});
  }
  ASSERT_TRUE(turn_all([&] { return driver_.jobs.empty(); }));
  clock_.pass(6 * kSecond);
  EXPECT_TRUE(turn_all([&] { return server_->connections() == 0; }));
}

TEST_F(UplinkTest, ARootThatWasStartedAgainIsAskedOnceMore) {
  start_all();
  ASSERT_TRUE(turn_all([&] { return all_granted(5); }));
  const SocketAddress address = server_->address();
  driver_.jobs.clear();
  ServerOptions options;
  options.keys.common = kKey;
  options.listen = address;
  server_.reset();
  controller_ =
      std::make_unique<Controller>(driver_, ControllerOptions{.max_jobs = 8, .seed = 7}, clock_);
  auto again = ControlServer::open(*controller_, options);
  ASSERT_TRUE(again) << again.error().what;
  server_ = std::move(*again);
  EXPECT_TRUE(turn_all([&] { return all_granted(6); }));
  EXPECT_EQ(leaves_[0].controller->counters().trees_failed.get(), 0u);
}

TEST_F(UplinkTest, AWrongKeyIsSaidToTheWorkers) {
  start(kKey);
  start_leaf(leaves_[0], 0, test::key_of("another key, as long as the first"), server_->address());
  EXPECT_THAT(refusal(0), HasSubstr("not signed with this switch's key"));
  EXPECT_EQ(leaves_[0].controller->counters().parent_failures.get(), 1u);
}

TEST_F(UplinkTest, NobodyThereIsSaidToTheWorkers) {
  start(kKey);
  start_leaf(leaves_[0], 0, kKey, SocketAddress::parse("127.0.0.1:1").value());
  EXPECT_THAT(refusal(0), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(leaves_[0].controller->leaf().parent_trouble(), HasSubstr("127.0.0.1:1"));
}

TEST_F(UplinkTest, ASilentRootIsNotWaitedForForEver) {
  start(kKey);
  start_leaf(leaves_[0], 0, kKey, server_->address());
  (void)leaves_[0].controller->handle(part(0));
  for (int i = 0; i < 100; ++i) {  // the root's kernel accepts, the root does not answer
    clock_.pass(100 * kMs);
    leaves_[0].uplink->run();
  }
  const auto answer = leaves_[0].controller->handle(part(0));
  ASSERT_TRUE(std::holds_alternative<Refused>(answer));
  EXPECT_THAT(std::get<Refused>(answer).text, HasSubstr("did not greet in time"));
}

// The call that waits: asks until the tree is complete, or time is up.
TEST_F(UplinkTest, WaitingForATree) {
  start(kKey);
  std::atomic<bool> stop{false};
  std::thread serving([&] {
    while (!stop) {
      pollfd ready{server_->descriptor(), POLLIN, 0};
      (void)poll(&ready, 1, 5);
      server_->run();
    }
  });
  JoinTree leaves[] = {part(0), part(1)};
  for (uint32_t i : {0, 1}) {
    leaves[i].shards = driver_.shape_.shards;
    leaves[i].part.children = {test::address_of_child(int(i))};
  }
  std::unique_ptr<SwitchClient> clients[2];
  for (auto& client : clients) {
    client = std::move(*SwitchClient::open(server_->address(), kKey, 10 * kSecond));
  }
  const auto alone = clients[0]->join_tree(leaves[0], 100 * kMs);
  EXPECT_THAT(alone ? "" : alone.error().what, HasSubstr("branch 1 is missing"));
  Result<JobGrant> first = JobGrant{};
  std::thread other([&] { first = clients[0]->join_tree(leaves[0], 10 * kSecond); });
  const auto second = clients[1]->join_tree(leaves[1], 10 * kSecond);
  other.join();
  EXPECT_TRUE(first && second && first->job.job == second->job.job);
  leaves[0].part.tenant = "chemistry";
  leaves[0].tree = leaves[1].tree = 6;
  (void)clients[0]->join_tree(leaves[0], kMs);
  const auto odd = clients[1]->join_tree(leaves[1], 10 * kSecond);
  EXPECT_THAT(odd ? "" : odd.error().what, HasSubstr("asked to join a tree and refused (shape)"));
  stop = true;
  serving.join();
}

}  // namespace
}  // namespace slime::net
