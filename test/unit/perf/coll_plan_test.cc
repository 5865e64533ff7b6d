// How NCCL cuts an allreduce for CollNetChain.
#include "tools/perf/collective/plan.h"

#include <gtest/gtest.h>

namespace slime::perf {
namespace {

constexpr size_t kKib = 1024, kMib = kKib * kKib;

size_t calls_of(const Shape& shape, const Geometry& geometry) {
  return make_coll_plan(shape, geometry)[0].steps.size();
}
Shape floats(size_t bytes, int channels = 1, bool direct = false) {
  return {.count = bytes / 4, .channels = channels, .direct = direct};
}

TEST(CollPlanTest, SmallOperationsAreStillWholeChunks) {
  const Geometry calls = coll_geometry(floats(4), kMaxCollBytes, {});
  EXPECT_EQ(calls_of(floats(4), calls), 1u);
  EXPECT_EQ(calls.slot_bytes, 32 * kKib);
  EXPECT_EQ(calls.depth, 8u);
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
  EXPECT_EQ(coll_geometry(floats(64 * kMib, 8), kMaxCollBytes, {}).slot_bytes, 8 * 128 * kKib);
  const Geometry twelve = coll_geometry(floats(64 * kMib, 12), kMaxCollBytes, {});
  EXPECT_EQ(twelve.slot_bytes, 8 * 128 * kKib);
  EXPECT_EQ(calls_of(floats(64 * kMib, 12), twelve), 64u);
  EXPECT_EQ(twelve.depth, 12u) << "eight steps of all channels";
}

TEST(CollPlanTest, ChannelsNeedEnoughToDo) {
  EXPECT_EQ(coll_channels_for(8, 8), 1);
  EXPECT_EQ(coll_channels_for(640 * kKib - 1, 8), 1);
  EXPECT_EQ(coll_channels_for(640 * kKib, 8), 2);
  EXPECT_EQ(coll_channels_for(64 * kMib, 8), 8);
}

TEST(CollPlanTest, DirectCallsCoverTheUsersBytes) {
  const Shape odd = floats(3 * kMib + 12, 1, true);
  const Geometry one = coll_geometry(odd, kMaxCollBytes, {});
  EXPECT_EQ(calls_of(odd, one), 1u);
  EXPECT_EQ(one.slot_bytes, 3 * kMib + 12);
  const Shape doubles{.type = DataType::kFloat64, .count = 10 * kMib / 8, .direct = true};
  const Geometry split = coll_geometry(doubles, kMib + 7, {});
  EXPECT_EQ(split.slot_bytes, kMib) << "whole elements";
  EXPECT_EQ(calls_of(doubles, split), 10u);
}

TEST(CollPlanTest, NothingIsNoCall) {
  for (const Shape& nothing : {floats(0), floats(0, 1, true)}) {
    EXPECT_EQ(calls_of(nothing, coll_geometry(nothing, kMaxCollBytes, {})), 0u);
  }
}

// No call in flight shares memory with another, also where users choose small FIFOs.
TEST(CollPlanTest, SlotsFitTheFifos) {
  for (const size_t fifo : {8 * kKib, kMib, 4 * kMib}) {
    BufferSizes sizes;
    sizes.fifo[2] = fifo;
    for (const int channels : {1, 2, 3, 8, 9, 12, 17, 64}) {
      for (const size_t bytes : {size_t{4}, 100 * kKib, 20 * kMib, 4096 * kMib}) {
        const Geometry calls = coll_geometry(floats(bytes, channels), kMaxCollBytes, sizes);
        EXPECT_GE(calls.depth, 8u);
        EXPECT_LE(calls.slot_bytes * calls.depth, static_cast<size_t>(channels) * fifo)
            << channels << " channels, " << bytes << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace slime::perf
