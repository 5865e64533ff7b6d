// Many channels of one verbs rail, and the poller that they share.
#pragma once

#include <memory>
#include <vector>

#include "test/verbs/support.h"

namespace slime::verbs {

inline std::unique_ptr<Poller> poller_of(Rail& rail) {
  auto poller = rail.open_poller();
  EXPECT_TRUE(poller) << poller.error().what;
  return poller ? std::move(*poller) : nullptr;
}

// NICs that leave the completions of a destroyed queue pair in its queue.
inline FakeVerbsOptions keeping_completions() {
  FakeVerbsOptions options;
  options.keeps_completions = true;
  return options;
}

// Connected pairs of channels, whose tags are their places here. The right ends are on a poller.
struct Crowd {
  explicit Crowd(size_t count, uint32_t depth, const FakeVerbsOptions& options = {})
      : world(verbs_settings(), options), poller(poller_of(*world.right)) {
    for (uint64_t tag = 0; tag < count; ++tag) add(tag, depth);
  }
  void add(uint64_t tag, uint32_t depth) {
    auto left = world.left->open_channel({.active = true, .first = true, .depth = depth});
    auto right = world.right->open_channel({.depth = depth, .poller = poller.get(), .tag = tag});
    ASSERT_TRUE(left) << left.error().what;
    ASSERT_TRUE(right) << right.error().what;
    TestPair pair(world, std::move(*left), std::move(*right));
    ASSERT_TRUE(pair.connect());
    pairs.push_back(std::move(pair));
  }
  uint64_t polls() const { return world.nics.counts(1).polls; }
  std::vector<uint64_t> names(size_t room = 64) {
    std::vector<uint64_t> tags(room);
    tags.resize(poller->poll(tags));
    return tags;
  }
  // Something arrives at the right end of this pair.
  void arrive(size_t pair, int works = 1) {
    for (int i = 0; i < works; ++i) ASSERT_EQ(post_one(*pairs[pair].left, Work{}), Status::kOk);
    world.settle();
  }
  // Returns how many works have arrived there; the left end forgets its own.
  size_t take(size_t pair) {
    Status status = Status::kOk;
    (void)poll_all(*pairs[pair].left, &status);
    return poll_all(*pairs[pair].right, &status).size();
  }

  TestNics world;
  std::unique_ptr<Poller> poller;
  std::vector<TestPair> pairs;
};

}  // namespace slime::verbs
