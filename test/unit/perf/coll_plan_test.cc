// How NCCL cuts an allreduce for CollNetChain.
#include "tools/perf/collective/plan.h"

#include <gtest/gtest.h>

namespace slime::perf {
namespace {

constexpr size_t kKib = 1024, kMib = kKib * kKib;

TEST(CollPlanTest, SmallOperationsAreStillWholeChunks) {
  const CollPlan plan = make_coll_plan({.bytes = 4}, {});
  EXPECT_EQ(plan.calls, 1u);
  EXPECT_EQ(plan.call_bytes, 32 * kKib);
  EXPECT_EQ(plan.depth, 8u);
}

TEST(CollPlanTest, ChunksGrowWithTheOperation) {
  const auto chunk = [](size_t bytes) { return coll_chunk_bytes(bytes, 1, {}); };
  EXPECT_EQ(chunk(64 * kKib - 1), 32 * kKib);
  EXPECT_EQ(chunk(64 * kKib), 64 * kKib);
  EXPECT_EQ(chunk(kMib - 1), 64 * kKib);
  EXPECT_EQ(chunk(kMib), 128 * kKib);
  EXPECT_EQ(chunk(16 * kMib - 1), 128 * kKib);
  EXPECT_EQ(chunk(16 * kMib), 256 * kKib);
  EXPECT_EQ(coll_chunk_bytes(16 * kMib, 4, {}), 128 * kKib) << "shared by the channels";
  BufferSizes small;
  small.fifo[2] = 8 * 64 * kKib;
  EXPECT_EQ(coll_chunk_bytes(16 * kMib, 1, small), 64 * kKib) << "a chunk fits a step";
}

TEST(CollPlanTest, EightChannelsShareACall) {
  EXPECT_EQ(make_coll_plan({.bytes = 64 * kMib, .channels = 8}, {}).call_bytes, 8 * 128 * kKib);
  const CollPlan twelve = make_coll_plan({.bytes = 64 * kMib, .channels = 12}, {});
  EXPECT_EQ(twelve.call_bytes, 8 * 128 * kKib);
  EXPECT_EQ(twelve.calls, 64u);
  EXPECT_EQ(twelve.depth, 12u) << "eight steps of all channels";
}

TEST(CollPlanTest, ChannelsNeedEnoughToDo) {
  EXPECT_EQ(coll_channels_for(8, 8), 1);
  EXPECT_EQ(coll_channels_for(640 * kKib - 1, 8), 1);
  EXPECT_EQ(coll_channels_for(640 * kKib, 8), 2);
  EXPECT_EQ(coll_channels_for(64 * kMib, 8), 8);
}

TEST(CollPlanTest, DirectCallsCoverTheUsersBytes) {
  const CollPlan one = make_coll_plan({.bytes = 3 * kMib + 12, .direct = true}, {});
  EXPECT_EQ(one.calls, 1u);
  EXPECT_EQ(one.call_bytes, 3 * kMib + 12);
  const CollPlan split = make_coll_plan(
      {.bytes = 10 * kMib, .element_bytes = 8, .direct = true, .max_call_bytes = kMib + 7}, {});
  EXPECT_EQ(split.call_bytes, kMib) << "whole elements";
  EXPECT_EQ(split.calls, 10u);
}

TEST(CollPlanTest, NothingIsNoCall) {
  EXPECT_EQ(make_coll_plan({.bytes = 0}, {}).calls, 0u);
  EXPECT_EQ(make_coll_plan({.bytes = 0, .direct = true}, {}).calls, 0u);
}

// No call in flight shares memory with another, also where users choose small FIFOs.
TEST(CollPlanTest, SlotsFitTheFifos) {
  for (const size_t fifo : {8 * kKib, kMib, 4 * kMib}) {
    BufferSizes sizes;
    sizes.fifo[2] = fifo;
    for (const int channels : {1, 2, 3, 8, 9, 12, 17, 64}) {
      for (const size_t bytes : {size_t{4}, 100 * kKib, 20 * kMib, 4096 * kMib}) {
        const CollPlan plan = make_coll_plan({.bytes = bytes, .channels = channels}, sizes);
        EXPECT_GE(plan.depth, 8u);
        EXPECT_LE(plan.call_bytes * plan.depth, static_cast<size_t>(channels) * fifo)
            << channels << " channels, " << bytes << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace slime::perf
