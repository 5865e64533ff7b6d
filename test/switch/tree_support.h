// A tree of switches: a root and leaves, controllers with a virtual clock and switches without
// packets. The leaves' questions are carried to the root by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "switch/controller/controller.h"
#include "test/switch/control_support.h"

namespace slime::net {

using control::JobGrant;
using control::JobState;
using control::JoinTree;
using control::Message;
using control::Refused;
using control::State;
using test::kMs;

inline const SocketAddress kRootControl = SocketAddress::parse("127.0.0.9:28900").value();

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

}  // namespace slime::net
