#include "link/rail/work_slots.h"

#include <gtest/gtest.h>

#include <vector>

namespace slime {
namespace {

struct Owner final : WorkOwner {
  void on_done(uint32_t part) override { done.push_back(part); }
  void on_lost(uint32_t part) override { lost.push_back(part); }
  std::vector<uint32_t> done, lost;
};

TEST(WorkSlots, EachWorkEndsOnce) {
  WorkSlots slots(8);
  const uint64_t first = slots.add({nullptr, 1, 10}), second = slots.add({nullptr, 2, 20});
  EXPECT_NE(first, second);
  ASSERT_NE(slots.end(second), nullptr);
  EXPECT_EQ(slots.end(second), nullptr) << "its completion came twice";
  const OpenWork* const ended = slots.end(first);
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->length, 10u);
  EXPECT_EQ(ended->part, 1u);
  const uint64_t again = slots.add({nullptr, 3, 30});
  EXPECT_EQ(slots.end(first), nullptr) << "the slot has another work now";
  EXPECT_NE(slots.end(again), nullptr);
}

TEST(WorkSlots, MayGrowWithWhatIsOpen) {
  constexpr uint32_t kMost = 500;
  WorkSlots slots(kMost, 0, true);
  std::vector<uint64_t> cookies;
  for (uint32_t i = 0; i < kMost; ++i) cookies.push_back(slots.add({nullptr, i, i + 7}));
  for (uint32_t i = 0; i < kMost; ++i) {
    const OpenWork* const ended = slots.end(cookies[i]);
    ASSERT_NE(ended, nullptr) << i;
    EXPECT_EQ(ended->part, i);
    EXPECT_EQ(ended->length, i + 7);
  }
  EXPECT_TRUE(slots.none_open());
}

TEST(WorkSlots, WhatNeverBeganDoesNotEnd) {
  WorkSlots slots(8);
  EXPECT_EQ(slots.end(0), nullptr);
  const uint64_t open = slots.add({});
  for (const uint64_t claimed : {open + 1, open | 1u << 31, open + (uint64_t{1} << 32),
                                 open + (uint64_t{2} << 32), open & UINT32_MAX, ~uint64_t{0}}) {
    EXPECT_EQ(slots.end(claimed), nullptr) << claimed;
  }
  EXPECT_NE(slots.end(open), nullptr);
  EXPECT_EQ(slots.end(open + (uint64_t{1} << 32)), nullptr) << "the generation of a free slot";
}

TEST(WorkSlots, TheOwnerIsToldWhatIsLostOfItsKind) {
  WorkSlots slots(8);
  Owner user, link;
  (void)slots.add({&user, 1, 0, WorkKind::kUser});
  const uint64_t done = slots.add({&user, 2, 0, WorkKind::kUser});
  (void)slots.add({&link, 3, 0, WorkKind::kControl});
  (void)slots.add({&link, 4, 0, WorkKind::kProbe});
  (void)slots.add({nullptr, 5, 0, WorkKind::kControl});
  EXPECT_EQ(slots.controls(), 3u);
  (void)slots.end(done);
  slots.hand_back(false);
  EXPECT_EQ(link.lost, (std::vector<uint32_t>{3, 4}));
  EXPECT_TRUE(user.lost.empty());
  EXPECT_EQ(slots.controls(), 0u);
  slots.hand_back(true);
  slots.hand_back(true);
  EXPECT_EQ(user.lost, (std::vector<uint32_t>{1}));
}

// One slot has nearly all works of a quiet link. Its generation begins again after some hours.
TEST(WorkSlots, OneSlotMayBeUsedForEver) {
  WorkSlots slots(1, UINT32_MAX - 9);
  uint64_t last = 0;
  for (uint32_t i = 0; i < 20; ++i) {
    const uint64_t cookie = slots.add({nullptr, i});
    EXPECT_NE(cookie, last);
    EXPECT_EQ(slots.end(last), nullptr);
    const OpenWork* const ended = slots.end(cookie);
    ASSERT_NE(ended, nullptr) << i;
    ASSERT_EQ(ended->part, i);
    EXPECT_EQ(slots.end(cookie), nullptr);
    last = cookie;
  }
}

}  // namespace
}  // namespace slime
