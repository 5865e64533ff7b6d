// Protocols and channels by size, and the sizes of messages.
#include "tools/perf/collective/plan.h"

#include <gtest/gtest.h>

namespace slime::perf {
namespace {

constexpr AllowedProtocols kAll = {true, true, true};

Protocol chosen(size_t bytes, int ranks = 2, int channels = 1,
                const AllowedProtocols& allowed = kAll) {
  return default_protocol(Collective::kAllReduce, bytes, ranks, channels, allowed);
}

TEST(PatternTest, SmallMessagesAreLlAndLargeOnesSimple) {
  EXPECT_EQ(chosen(8), Protocol::kLl);
  EXPECT_EQ(chosen(16 << 10), Protocol::kLl);
  EXPECT_EQ(chosen(4 << 20), Protocol::kSimple);
  EXPECT_EQ(chosen(1 << 30), Protocol::kSimple);
}

TEST(PatternTest, MoreStepsAndChannelsLeaveLlLater) {
  EXPECT_EQ(chosen(32 << 10), Protocol::kLl);
  EXPECT_EQ(chosen((32 << 10) + 1), Protocol::kSimple);
  EXPECT_EQ(chosen(64 << 10, 4), Protocol::kLl);
  EXPECT_EQ(chosen(64 << 10, 2, 2), Protocol::kLl);
}

TEST(PatternTest, PointToPointUsesNcclsThreshold) {
  EXPECT_EQ(default_protocol(Collective::kAllToAll, 16384, 4, 1, kAll), Protocol::kLl);
  EXPECT_EQ(default_protocol(Collective::kAllToAll, 16385, 4, 1, kAll), Protocol::kSimple);
  EXPECT_EQ(default_protocol(Collective::kSendRecv, 32768, 4, 2, kAll), Protocol::kLl);
}

TEST(PatternTest, Ll128IsChosenOnlyWhereItIsAskedFor) {
  for (size_t bytes = 8; bytes < size_t{1} << 30; bytes *= 2) {
    EXPECT_NE(chosen(bytes), Protocol::kLl128) << bytes;
  }
  const auto asked = allowed_protocols("LL128");
  ASSERT_TRUE(asked);
  EXPECT_EQ(chosen(1 << 20, 2, 1, *asked), Protocol::kLl128);
  const auto only_ll = allowed_protocols("LL");
  ASSERT_TRUE(only_ll);
  EXPECT_EQ(chosen(1 << 20, 2, 1, *only_ll), Protocol::kLl);
}

TEST(PatternTest, NcclProtoIsReadAsNcclReadsIt) {
  const auto without = allowed_protocols("^LL128");
  ASSERT_TRUE(without);
  EXPECT_EQ(*without, (std::array<bool, 3>{true, false, true}));
  const auto listed = allowed_protocols("simple,LL");
  ASSERT_TRUE(listed);
  EXPECT_EQ(*listed, (std::array<bool, 3>{true, false, true}));
  const auto unset = allowed_protocols(nullptr);
  ASSERT_TRUE(unset);
  EXPECT_EQ(*unset, (std::array<bool, 3>{true, true, true}));
  const auto wrong = allowed_protocols("LL,Complicated");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("Complicated"), std::string::npos);
}

TEST(PatternTest, GeometryIsNccls) {
  const BufferSizes sizes;
  const Geometry simple = ring_geometry(Collective::kAllReduce, Protocol::kSimple, sizes);
  EXPECT_EQ(simple.slot_bytes, 1u << 20);
  EXPECT_EQ(simple.chunk_bytes, 2u << 20);
  EXPECT_EQ(simple.depth, 4u);
  const Geometry ll = ring_geometry(Collective::kAllReduce, Protocol::kLl, sizes);
  EXPECT_EQ(ll.slot_bytes, 64u << 10);
  EXPECT_EQ(ll.chunk_bytes, 32u << 10);
  EXPECT_EQ(ll.depth, 8u);
  const Geometry ll128 = ring_geometry(Collective::kAllReduce, Protocol::kLl128, sizes);
  EXPECT_EQ(ll128.slot_bytes, 614400u);
  EXPECT_EQ(ll128.chunk_bytes, 576000u);
  const Geometry pipeline = ring_geometry(Collective::kBroadcast, Protocol::kSimple, sizes);
  EXPECT_EQ(pipeline.slot_bytes, 512u << 10);
  const Geometry p2p = p2p_geometry(Protocol::kSimple, 8 << 20, sizes);
  EXPECT_EQ(p2p.chunk_bytes, 128u << 10);
  EXPECT_EQ(p2p_geometry(Protocol::kSimple, 512 << 10, sizes).chunk_bytes, 64u << 10);
  EXPECT_EQ(p2p_geometry(Protocol::kSimple, 100 << 10, sizes).chunk_bytes, 32u << 10);
}

TEST(PatternTest, MessagesOfLinesAreLongerThanTheirData) {
  EXPECT_EQ(message_bytes(Protocol::kSimple, 1001), 1001u);
  EXPECT_EQ(message_bytes(Protocol::kLl, 8), 16u);
  EXPECT_EQ(message_bytes(Protocol::kLl, 9), 32u);
  EXPECT_EQ(message_bytes(Protocol::kLl128, 120), 128u);
  EXPECT_EQ(message_bytes(Protocol::kLl128, 121), 256u);
  EXPECT_EQ(message_bytes(Protocol::kLl, 0), 0u);
}

TEST(PatternTest, ShortOperationsUseFewerChannels) {
  EXPECT_EQ(channels_for(Protocol::kSimple, 8, 2, 4), 1);
  EXPECT_EQ(channels_for(Protocol::kSimple, 96 << 10, 2, 4), 3);
  EXPECT_EQ(channels_for(Protocol::kSimple, 64 << 20, 2, 4), 4);
  EXPECT_EQ(channels_for(Protocol::kLl, 16 << 10, 2, 4), 2);
}

TEST(PatternTest, BufferSizesComeFromNcclsVariables) {
  setenv("NCCL_BUFFSIZE", "1M", 1);
  const auto sizes = buffer_sizes_from_environment();
  setenv("NCCL_BUFFSIZE", "1000", 1);
  const auto wrong = buffer_sizes_from_environment();
  unsetenv("NCCL_BUFFSIZE");
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->fifo[2], 1u << 20);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("NCCL_BUFFSIZE=1000"), std::string::npos);
}

}  // namespace
}  // namespace slime::perf
