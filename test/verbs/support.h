// What the tests of the verbs rail share: two rails on NICs without hardware, connected channels,
// registered memory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "settings/settings.h"
#include "test/support/test_buffer.h"
#include "test/support/verbs/count_closing.h"
#include "test/support/verbs/fake_verbs.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {

using test::count_closing;
using test::eventually;
using test::failure_of;
using test::FakeVerbs;
using test::FakeVerbsCounts;
using test::FakeVerbsOptions;
using test::poll_all;
using test::poll_once;
using test::post_one;
using test::TestBuffer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The NIC gives up at once where a peer is gone. See TestPair::connect().
inline Settings verbs_settings(int lanes = 1) {
  Settings settings;
  settings.ifname = "lo";
  settings.qps_per_rail = lanes;
  settings.ib_timeout = 1;
  settings.ib_retry_count = 0;
  return settings;
}

// A rail on each of two NICs. At its end nothing may be left, and no NIC may have been misused.
struct TestNics {
  FakeVerbs nics;
  std::unique_ptr<Rail> left, right;

  explicit TestNics(const Settings& both = verbs_settings(), const FakeVerbsOptions& options = {})
      : TestNics(both, both, options) {}
  TestNics(const Settings& of_left, const Settings& of_right, const FakeVerbsOptions& options)
      : nics(options), left(open(of_left, "=fake0")), right(open(of_right, "=fake1")) {}
  ~TestNics() {
    EXPECT_TRUE(eventually([this] {  // closed channels say so to their peers
      settle();
      return count_closing(*left) + count_closing(*right) == 0;
    }));
    left.reset();
    right.reset();
    EXPECT_THAT(nics.violations(), IsEmpty());
    EXPECT_EQ(nics.objects(), 0u) << "something is left of the rails";
  }

  void settle() {
    while (nics.step()) continue;
  }

 private:
  std::unique_ptr<Rail> open(Settings settings, const char* hca) {
    settings.hca = hca;
    std::vector<std::string> notes;
    auto rails = open_verbs_rails(nics.symbols(), nics.sysfs_root(), settings, &notes);
    if (rails && rails->size() == 1) return std::move(rails->front());
    for (const std::string& note : notes) ADD_FAILURE() << note;
    std::abort();
  }
};

inline std::unique_ptr<Channel> open_channel(Rail& rail, bool first) {
  auto channel = rail.open_channel({.active = first, .first = first});
  EXPECT_TRUE(channel) << channel.error().what;
  return channel ? std::move(*channel) : nullptr;
}

// A channel of each rail, which are each other's peers. The left one has the other's address first
// (ChannelOptions::first).
struct TestPair {
  TestNics& world;
  std::unique_ptr<Channel> left, right;
  Status left_status = Status::kAgain, right_status = Status::kAgain;

  explicit TestPair(TestNics& nics)
      : world(nics),
        left(open_channel(*nics.left, true)),
        right(open_channel(*nics.right, false)) {}

  TestPair(TestNics& nics, std::unique_ptr<Channel> of_left, std::unique_ptr<Channel> of_right)
      : world(nics), left(std::move(of_left)), right(std::move(of_right)) {}

  // Nothing moves before both ends take it: their NICs give up at once.
  void connect(const ChannelAddress& of_left, const ChannelAddress& of_right) {
    left_status = left->connect(of_right);
    right_status = right->connect(of_left);
    world.settle();
    left_status = left->connect(of_right);
    world.settle();
    right_status = right->connect(of_left);
  }
  bool connect() {
    if (!left || !right) return false;
    connect(left->address(), right->address());
    EXPECT_EQ(left_status, Status::kOk) << left->failure().what;
    EXPECT_EQ(right_status, Status::kOk) << right->failure().what;
    return left_status == Status::kOk && right_status == Status::kOk;
  }
};

inline Work work_of(TestBuffer& from, TestBuffer& to, uint32_t length, uint32_t immediate = 0,
                    uint64_t cookie = 0) {
  return test::work_of(from, 0, to, 0, length, immediate, cookie);
}

}  // namespace slime::verbs
