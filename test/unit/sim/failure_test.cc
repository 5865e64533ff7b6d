// How simulated rails fail: every ending is seeded, counted and replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "test/support/sim_link.h"

namespace slime {
namespace {

using test::SimLink;
using test::SimLinkOptions;

SimLinkOptions dying(uint64_t seed, sim::Death death = sim::Death::kNoticed) {
  SimLinkOptions options;
  options.seed = seed;
  options.memory_bytes = 1 << 16;
  options.caps.arrives_unpolled = true;
  options.model.dies_at_ns = 3'000;
  options.model.notice_ns = 10'000;
  options.model.death = death;
  return options;
}

// The virtual time at which this end returns the failure; 0: it never does.
uint64_t noticed_ns(SimLink& link, Channel& channel) {
  Status status = Status::kOk;
  do {
    SimLink::drain(channel, &status);
  } while (status == Status::kOk && link.network.step());
  return status == Status::kOk ? 0 : link.network.now_ns();
}

TEST(SimFailure, BothEndsReturnTheFailureWithinTheNoticeTime) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimLink link(dying(seed));
    ASSERT_TRUE(link.connect());
    link.network.advance_to(2'999);
    EXPECT_FALSE(link.left_rail->dead());
    for (Channel* channel : {link.left.get(), link.right.get()}) {
      const uint64_t at_ns = noticed_ns(link, *channel);
      EXPECT_GE(at_ns, 3'000U);
      EXPECT_LE(at_ns, 13'000U);
      EXPECT_EQ(channel->failure().status, Status::kRemote);
      EXPECT_NE(channel->failure().what.find("died"), std::string::npos);
      EXPECT_NE(channel->failure().what.find(channel->peer_name()), std::string::npos);
    }
    EXPECT_TRUE(link.left_rail->dead());
  }
}

TEST(SimFailure, OfASilentDeathNoEndGetsANotice) {
  SimLink link(dying(1, sim::Death::kSilent));
  ASSERT_TRUE(link.connect());
  link.network.advance_to(4'000);
  const uint32_t depth = link.left_rail->caps().send_queue_depth;
  size_t taken = 0;
  Status status = Status::kOk;
  for (int i = 0; i < 100 && status == Status::kOk; ++i) taken += link.post(0, 64, 16, &status);
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(taken, depth) << "the queue fills, and that is all that can be seen";
  EXPECT_EQ(noticed_ns(link, *link.left), 0U);
  EXPECT_EQ(noticed_ns(link, *link.right), 0U);
  link.right->fence();
  link.right.reset();
  EXPECT_EQ(noticed_ns(link, *link.left), 0U) << "nothing passes, no message of the end either";
}

TEST(SimFailure, OneSidedDeathsReachTheOtherEndByItsPeer) {
  int left_failed = 0, right_failed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SimLinkOptions options = dying(seed);
    options.model.one_sided_ppm = 1'000'000;
    SimLink link(options);
    ASSERT_TRUE(link.connect());
    Status left = Status::kOk, right = Status::kOk;
    while (link.network.step()) continue;
    SimLink::drain(*link.left, &left);
    SimLink::drain(*link.right, &right);
    ASSERT_NE(left == Status::kOk, right == Status::kOk) << "exactly one end gets a notice";
    left_failed += left != Status::kOk;
    right_failed += right != Status::kOk;
    Channel& failed = left != Status::kOk ? *link.left : *link.right;
    Channel& other = left != Status::kOk ? *link.right : *link.left;
    failed.fence();
    EXPECT_NE(noticed_ns(link, other), 0U);
    EXPECT_NE(other.failure().what.find("fenced"), std::string::npos);
  }
  EXPECT_GT(left_failed, 10);
  EXPECT_GT(right_failed, 10);
}

// After the death: what is reported, fence included, has its bytes; on an ordered rail it is the
// first so many; and nothing at all changes after the fence.
TEST(SimFailure, WhatADyingRailDeliversIsWholeAndFencedOff) {
  sim::Outcomes seen;
  for (const bool ordered : {true, false}) {
    for (const bool confirm : {true, false}) {
      for (uint64_t seed = 1; seed <= 300; ++seed) {
        SimLinkOptions options = dying(seed);
        options.caps.ordered = ordered;
        options.confirm_delivery = confirm;
        options.model.jitter_ns = ordered ? 0 : 2'000;
        SimLink link(options);
        ASSERT_TRUE(link.connect());
        link.post(0, 40, 1'000);
        std::vector<Done> arrived;
        const uint64_t fence_at_ns = 3'000 + seed * 37 % 8'000;
        while (link.network.now_ns() < fence_at_ns) {
          for (const Done& done : SimLink::drain(*link.right)) arrived.push_back(done);
          SimLink::drain(*link.left);
          link.network.advance(200);
        }
        link.right->fence();
        const std::vector<std::byte> before = link.target;
        while (link.network.step()) continue;
        EXPECT_TRUE(link.target == before) << "seed " << seed;
        Status status = Status::kInternal;
        for (const Done& done : SimLink::drain(*link.right, &status)) arrived.push_back(done);
        EXPECT_EQ(status, Status::kOk);
        std::set<uint32_t> reported;
        for (const Done& done : arrived) {
          EXPECT_TRUE(reported.insert(done.immediate).second);
          EXPECT_TRUE(link.landed(done.immediate, 1'000));
          EXPECT_TRUE(!ordered || done.immediate == reported.size() - 1);
        }
        EXPECT_EQ(link.network.violations().total(), 0U);
        const sim::Outcomes& fates = link.network.outcomes();
        seen.delivered += fates.delivered;
        seen.late += fates.late;
        seen.torn += fates.torn;
        seen.lost += fates.lost;
        seen.unconfirmed += fates.unconfirmed;
        seen.fenced_off += fates.fenced_off;
      }
    }
  }
  for (const uint64_t count :
       {seen.delivered, seen.late, seen.torn, seen.lost, seen.unconfirmed, seen.fenced_off}) {
    EXPECT_GT(count, 100U) << "a way to fail that this test never met";
  }
}

// A work is delivered and reported, and its confirmation is lost: the case in which a sender
// repeats a work that the receiver has.
TEST(SimFailure, ConfirmationsDieWithTheRail) {
  int confirmed = 0, not_confirmed = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimLinkOptions options = dying(seed);
    options.confirm_delivery = true;
    SimLink link(options);
    ASSERT_TRUE(link.connect());
    link.post(0, 1, 100);
    link.network.advance_to(2'500);
    ASSERT_EQ(SimLink::drain(*link.right).size(), 1U);
    std::vector<Done> sent;
    while (link.network.step()) {
      for (const Done& done : SimLink::drain(*link.left)) sent.push_back(done);
    }
    ASSERT_LE(sent.size(), 1U);
    (sent.empty() ? not_confirmed : confirmed) += 1;
  }
  EXPECT_GT(confirmed, 5);
  EXPECT_GT(not_confirmed, 5);
}

TEST(SimFailure, DiesAfterSoManyWorksAndLivesAgain) {
  SimLinkOptions options;
  options.model.dies_after_works = 5;
  SimLink link(options);
  ASSERT_TRUE(link.connect());
  EXPECT_EQ(link.post(0, 4, 100), 4U);
  link.network.advance(1);
  EXPECT_FALSE(link.left_rail->dead());
  link.post(4, 1, 100);
  link.network.advance(1);
  EXPECT_TRUE(link.left_rail->dead());
  EXPECT_FALSE(link.right_rail->dead());
  link.open();
  EXPECT_FALSE(link.connect());
  EXPECT_EQ(link.left->failure().status, Status::kRemote);
  link.left_rail->revive();
  link.open();
  ASSERT_TRUE(link.connect());
  link.post(0, 3, 100);
  EXPECT_EQ(link.play().size(), 3U);
}

TEST(SimFailure, RepeatedCompletionsCarryTheSameNamesAndNoBytes) {
  SimLinkOptions options;
  options.model.repeat_sent_ppm = 300'000;
  options.model.repeat_arrived_ppm = 300'000;
  options.model.repeat_ns = 50'000;
  SimLink link(options);
  ASSERT_TRUE(link.connect());
  EXPECT_EQ(link.post(0, 64, 100), 64U);
  const std::vector<Done> arrived = link.play();
  EXPECT_GT(arrived.size(), 64U + 5);
  EXPECT_LT(arrived.size(), 64U + 40);
  EXPECT_GT(link.sent, 64U + 5);
  std::set<uint32_t> names;
  for (const Done& done : arrived) {
    names.insert(done.immediate);
    EXPECT_EQ(done.bytes, 100U);
  }
  EXPECT_EQ(names.size(), 64U);
  EXPECT_EQ(snapshot(link.right->counters).arrivals, 64U);
  size_t places = 0;
  for (size_t taken = 1; taken > 0; places += taken) taken = link.post(0, 64, 8);
  EXPECT_EQ(places, link.left_rail->caps().send_queue_depth) << "a repeat freed a place";
}

TEST(SimFailure, MisuseIsCounted) {
  {
    SimLink link({});
    EXPECT_EQ(link.post(0, 1, 100), 0U);
    EXPECT_EQ(link.network.violations().bad_calls, 1U) << "posted before connected";
    link.left_rail->deregister_memory({1, 2});
    EXPECT_EQ(link.network.violations().bad_calls, 2U) << "keys that were never given out";
  }
  {
    SimLink link({});
    ASSERT_TRUE(link.connect());
    link.post(0, 1, 100);
    link.source[50] ^= std::byte{1};
    EXPECT_EQ(link.play().size(), 1U);
    EXPECT_EQ(link.network.violations().source_changed, 1U);
  }
  {
    SimLink link({});
    ASSERT_TRUE(link.connect());
    link.post(0, 1, 100);
    link.left_rail->deregister_memory(link.source_keys);
    EXPECT_TRUE(link.play().empty());
    EXPECT_GE(link.network.violations().local_access, 1U);
    Status status = Status::kOk;
    SimLink::drain(*link.left, &status);
    EXPECT_EQ(status, Status::kInvalid);
  }
  {
    SimLink link({});
    ASSERT_TRUE(link.connect());
    link.right_rail->deregister_memory(link.target_keys);
    link.post(0, 1, 100);
    EXPECT_TRUE(link.play().empty());
    EXPECT_EQ(link.network.violations().remote_access, 1U);
  }
}

// Everything that a run shows, in one number.
uint64_t trace(SimLink& link) {
  uint64_t hash = 14695981039346656037U;
  const auto note = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
  EXPECT_TRUE(link.connect());
  for (uint32_t round = 0; round < 60; ++round) {
    Status status = Status::kOk;
    note(link.post(round * 5, 5, 200, &status));
    note(static_cast<uint64_t>(status));
    for (Channel* channel : {link.left.get(), link.right.get()}) {
      for (const Done& done : SimLink::drain(*channel, &status)) {
        note(static_cast<uint64_t>(done.kind) + done.immediate + done.cookie);
      }
      note(static_cast<uint64_t>(status));
    }
    link.network.step();
    note(link.network.now_ns());
  }
  link.right->fence();
  for (const Done& done : SimLink::drain(*link.right)) note(done.immediate);
  note(link.network.outcomes().lost + 100 * link.network.outcomes().late);
  return hash;
}

TEST(SimFailure, ASeedReplaysWhateverRanBefore) {
  const auto options_of = [](uint64_t seed) {
    SimLinkOptions options = dying(seed);
    options.caps.ordered = false;
    options.model.jitter_ns = 3'000;
    options.model.delay_ppm = 100'000;
    options.model.delay_ns = 9'000;
    options.model.connect_retries = 4;
    options.model.repeat_arrived_ppm = 100'000;
    options.model.repeat_ns = 1'000;
    options.model.costs.poll_ns = 20;
    options.model.dies_at_ns = 4'000 + seed * 97 % 5'000;
    return options;
  };
  SimLink used(options_of(1));
  std::set<uint64_t> traces;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const SimLinkOptions options = options_of(seed);
    used.left.reset();
    used.right.reset();
    used.network.reset(seed);
    used.left_rail->configure(used.left_rail->caps(), options.model);
    used.right_rail->configure(used.right_rail->caps(), options.model);
    used.open();
    const uint64_t again = trace(used);
    SimLink fresh(options);
    fresh.left.reset();
    fresh.right.reset();
    fresh.network.reset(seed);  // a new network drew for its rails' keys
    fresh.open();
    EXPECT_EQ(trace(fresh), again) << "seed " << seed;
    traces.insert(again);
  }
  EXPECT_GT(traces.size(), 195U) << "seeds make no difference";
}

TEST(SimFailure, ResetLosesOpenChannelsAndKeepsMemory) {
  SimLink link({});
  ASSERT_TRUE(link.connect());
  link.post(0, 5, 100);
  link.network.reset(2);
  Status status = Status::kOk;
  SimLink::drain(*link.left, &status);
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_EQ(link.network.now_ns(), 0U);
  EXPECT_TRUE(link.network.idle());
  link.open();
  ASSERT_TRUE(link.connect());
  link.post(0, 5, 100);
  EXPECT_EQ(link.play().size(), 5U);
  EXPECT_EQ(link.network.violations().total(), 0U);
}

}  // namespace
}  // namespace slime
