// What the tests of the libfabric rail share: rails on NICs without hardware, and connected
// channels.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "settings/settings.h"
#include "test/support/fabric/fake_fabric.h"
#include "test/support/test_buffer.h"
#include "transports/fabric/discovery.h"
#include "transports/tcp/rail.h"

namespace slime::fabric {

using test::eventually;
using test::failure_of;
using test::FakeFabric;
using test::FakeFabricOptions;
using test::FakeNic;
using test::poll_all;
using test::poll_once;
using test::post_one;
using test::TestBuffer;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

inline Settings fabric_settings(const std::string& provider = "efa") {
  Settings settings;
  settings.ifname = "lo";
  settings.fabric_provider = provider;
  return settings;
}

inline std::shared_ptr<Rail> open_side_rail() {
  auto rails = tcp::open_tcp_rails(fabric_settings(), nullptr);
  if (!rails || rails->empty()) std::abort();
  return std::move(rails->front());
}

// The rails of all NICs, and what was noted of the others.
struct Opened {
  std::vector<std::unique_ptr<Rail>> rails;
  std::vector<std::string> notes;

  explicit Opened(const FakeFabric& nics, const Settings& settings = fabric_settings()) {
    const auto with =
        Opening::prepare(nics.symbols(), open_side_rail(), settings, nics.sysfs_root());
    EXPECT_TRUE(with) << with.error().what;
    if (with) rails = open_nics(*with, find_nics(*with, &notes), &notes);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& rail : rails) names.push_back(rail->caps().name);
    return names;
  }
};

inline FakeFabricOptions in_order() { return {.reorders = false}; }

// A rail on each of two NICs. At its end nothing may be left, and no NIC may have been misused.
struct TestNics {
  FakeFabric nics;
  std::unique_ptr<Rail> left, right;

  explicit TestNics(const FakeFabricOptions& options = {},
                    const Settings& settings = fabric_settings())
      : nics(options) {
    Opened opened(nics, settings);
    for (const std::string& note : opened.notes) ADD_FAILURE() << note;
    if (opened.rails.size() != 2) std::abort();
    left = std::move(opened.rails[0]);
    right = std::move(opened.rails[1]);
  }
  ~TestNics() {
    left.reset();
    right.reset();
    EXPECT_THAT(nics.violations(), IsEmpty());
    EXPECT_EQ(nics.objects(), 0u) << "something is left of the rails";
  }

  void settle() {
    while (nics.step()) continue;
  }
};

// A channel of each rail, which are each other's peers.
struct TestPair {
  TestNics& world;
  std::unique_ptr<Channel> left, right;
  Status left_status = Status::kAgain, right_status = Status::kAgain;

  explicit TestPair(TestNics& nics, bool confirm_delivery = false)
      : world(nics),
        left(open(*nics.left, confirm_delivery, true)),
        right(open(*nics.right, confirm_delivery, false)) {}

  bool connect() {
    if (!left || !right) return false;
    const ChannelAddress of_left = left->address(), of_right = right->address();
    (void)eventually([&] {
      left_status = left->connect(of_right);
      right_status = right->connect(of_left);
      world.settle();
      return is_settled(left_status) && is_settled(right_status);
    });
    EXPECT_EQ(left_status, Status::kOk) << left->failure().what;
    EXPECT_EQ(right_status, Status::kOk) << right->failure().what;
    return left_status == Status::kOk && right_status == Status::kOk;
  }

 private:
  // A failure of one end becomes one of the other.
  bool is_settled(Status status) const {
    const auto failed = [](Status one) { return one != Status::kOk && one != Status::kAgain; };
    return status == Status::kOk || failed(left_status) || failed(right_status);
  }
  static std::unique_ptr<Channel> open(Rail& rail, bool confirm_delivery, bool first) {
    auto channel =
        rail.open_channel({.active = first, .confirm_delivery = confirm_delivery, .first = first});
    EXPECT_TRUE(channel) << channel.error().what;
    return channel ? std::move(*channel) : nullptr;
  }
};

// Posts works until all of them are taken, and polls both ends until each has so many completions.
inline void run(TestPair& pair, std::span<const Work> works) {
  size_t sent = 0, arrived = 0, posted = 0;
  Status of_left = Status::kOk, of_right = Status::kOk;
  EXPECT_TRUE(eventually([&] {
    size_t taken = 0;
    EXPECT_EQ(pair.left->post(works.subspan(posted), &taken), Status::kOk);
    posted += taken;
    sent += poll_once(*pair.left, &of_left).size();
    arrived += poll_once(*pair.right, &of_right).size();
    pair.world.nics.step();
    const bool failed = of_left != Status::kOk || of_right != Status::kOk;
    return failed || (sent == works.size() && arrived == works.size());
  })) << posted
      << " posted, " << sent << " sent, " << arrived << " arrived";
  EXPECT_EQ(of_left, Status::kOk) << pair.left->failure().what;
  EXPECT_EQ(of_right, Status::kOk) << pair.right->failure().what;
  EXPECT_EQ(sent, works.size());
  EXPECT_EQ(arrived, works.size());
}

// Works of 8 bytes with the immediates 0, 1, 2 ...
inline std::vector<Work> works_of(TestBuffer& from, TestBuffer& to, uint32_t count) {
  std::vector<Work> works;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = size_t{8} * i % from.size();
    works.push_back(test::work_of(from, at, to, at, 8, i, i));
  }
  return works;
}

}  // namespace slime::fabric
