#include "link/stripes.h"

#include <gtest/gtest.h>

#include "message/immediate.h"

namespace slime {
namespace {

void expect_sound(uint64_t bytes, const StripePlan& plan, uint64_t max_work) {
  ASSERT_GE(plan.stripes, 1u);
  ASSERT_LE(plan.stripes, kMaxStripes);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan.stripes; ++i) {
    EXPECT_EQ(plan.offset(i), sum);
    EXPECT_EQ(plan.offset(i) % kLineBytes, 0u);
    const uint64_t length = plan.length(i, bytes);
    EXPECT_LE(length, max_work);
    EXPECT_TRUE(length > 0 || bytes == 0);
    sum += length;
  }
  EXPECT_EQ(sum, bytes);
}

TEST(Stripes, CoverTheMessageWithoutGapsAtLineBoundaries) {
  for (const uint64_t bytes : {0ul, 1ul, 127ul, 128ul, 129ul, 65535ul, 65536ul, 65537ul, 131071ul,
                               131072ul, 1000003ul, 1048576ul, 268435455ul, 1073741824ul}) {
    for (uint32_t rails = 1; rails <= 16; ++rails) {
      for (const uint64_t min_stripe : {128ul, 65536ul, 1048576ul}) {
        expect_sound(bytes, plan_stripes(bytes, rails, {min_stripe, 1 << 30}), 1 << 30);
      }
    }
  }
}

TEST(Stripes, SeveralARailAndNoneBelowTheMinimum) {
  EXPECT_EQ(plan_stripes(65536 * 4, 4, {65536, 1 << 30}).stripes, 4u);
  EXPECT_EQ(plan_stripes(65536 * 4 - 1, 4, {65536, 1 << 30}).stripes, 3u);
  EXPECT_EQ(plan_stripes(65536 * 100, 4, {65536, 1 << 30}).stripes, 4 * kStripesPerRail);
  EXPECT_EQ(plan_stripes(65536 * 1000, 16, {65536, 1 << 30}).stripes, kMaxStripes);
  EXPECT_EQ(plan_stripes(65536 * 100, 1, {65536, 1 << 30}).stripes, 1u);
  EXPECT_EQ(plan_stripes(65535, 4, {65536, 1 << 30}).stripes, 1u);
}

TEST(Stripes, MoreOfThemWhereALongOneKeepsTheSlowestRailTooLong) {
  EXPECT_EQ(plan_stripes(1 << 20, 2, {16384, 1 << 30, 32768}).stripes, 32u);
  EXPECT_EQ(plan_stripes(1 << 20, 2, {65536, 1 << 30, 32768}).stripes, 16u);
  EXPECT_EQ(plan_stripes(8 << 20, 2, {16384, 1 << 30, 32768}).stripes, kMaxStripes);
}

TEST(Stripes, AsManyAsTheLargestWorkNeeds) {
  const StripePlan plan = plan_stripes(10'000, 1, {65536, 1024});
  EXPECT_EQ(plan.stripes, 10u);
  expect_sound(10'000, plan, 1024);
}

TEST(Stripes, RefuseWhatDoesNotFitTheImmediate) {
  EXPECT_EQ(plan_stripes(1024 * (kMaxStripes + 1), 1, {65536, 1024}).stripes, 0u);
}

TEST(Immediate, DataSurvivesPacking) {
  for (const uint32_t entry : {0u, 63u}) {
    for (const uint32_t stripes : {1u, 2u, 64u}) {
      const DataImmediate in{entry, 7, stripes - 1, stripes, 0x1ff};
      ASSERT_EQ(kind_of(in.pack()), ImmediateKind::kData);
      const DataImmediate out = DataImmediate::unpack(in.pack());
      EXPECT_EQ(out.entry, entry);
      EXPECT_EQ(out.sub, 7u);
      EXPECT_EQ(out.stripe, stripes - 1);
      EXPECT_EQ(out.stripes, stripes);
      EXPECT_EQ(out.generation, 0x1ffu);
    }
  }
}

TEST(Immediate, KindsAreToldApart) {
  EXPECT_EQ(kind_of(cts_immediate(63, UINT32_MAX)), ImmediateKind::kCts);
  EXPECT_EQ(cts_entry_of(cts_immediate(63, UINT32_MAX)), 63u);
  EXPECT_EQ(kind_of(eager_immediate(UINT32_MAX)), ImmediateKind::kEager);
  const uint32_t control = control_immediate(ControlOp::kFenceNotice, 15);
  EXPECT_EQ(kind_of(control), ImmediateKind::kControl);
  EXPECT_EQ(control_op(control), ControlOp::kFenceNotice);
  EXPECT_EQ(control_value(control), 15u);
}

TEST(Immediate, LivesOfRailsSurvivePackingAndWrap) {
  for (const uint32_t rail : {0u, 31u}) {
    for (const uint32_t epoch : {0u, 1u, RailLife::kEpochMask}) {
      for (const bool is_sound : {false, true}) {
        const uint32_t value = RailLife{rail, epoch, is_sound}.pack();
        const uint32_t control = control_immediate(ControlOp::kJoined, value);
        const RailLife out = RailLife::unpack(control_value(control));
        EXPECT_EQ(out.rail, rail);
        EXPECT_EQ(out.epoch, epoch);
        EXPECT_EQ(out.is_sound, is_sound);
      }
    }
  }
  EXPECT_EQ(RailLife::next(RailLife::kEpochMask), 0u);
}

TEST(Immediate, CountersWidenAcrossTheWrap) {
  for (const uint32_t mask : {kSequenceMask, kEagerIndexMask, kControlValueMask}) {
    for (const uint32_t known : {0u, 5u, mask, mask + 1, 3 * mask, UINT32_MAX - 3}) {
      for (const int32_t step : {-20, -1, 0, 1, 20}) {
        const uint32_t truth = known + static_cast<uint32_t>(step);
        EXPECT_EQ(widen(known, truth & mask, mask), truth) << known << " " << step;
      }
    }
  }
}

}  // namespace
}  // namespace slime
