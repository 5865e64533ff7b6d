// What a contributor says of numbers that are lost beside others of their block.
#include <gtest/gtest.h>

#include <vector>

#include "collnet/payload/payload.h"

namespace slime {
namespace {

using number::HalfBits;
using sap::special::kAnchored0;
using sap::special::kAnchored1;
using sap::special::kCoarse;

constexpr uint32_t kLanes = 64, kBlock = kLanes / 2;

// Of a packet of float32 that begins so. Its second block holds ones.
uint8_t said(std::vector<float> elements, int8_t scale) {
  const Payload payload(DataType::kFloat32, ReduceOp::kSum, kLanes, 2);
  elements.resize(kBlock);
  elements.resize(2 * kBlock, 1.0F);
  return payload.coarseness(reinterpret_cast<const std::byte*>(elements.data()), 2 * kBlock,
                            {.exponents = {scale, 0}});
}

TEST(Coarseness, ComparesWhatABlockBeginsWithToItsScale) {
  EXPECT_EQ(said({1}, 0), kAnchored0 | kAnchored1);
  EXPECT_EQ(said({0x1p-10F, 1}, 0), kAnchored0 | kAnchored1);
  EXPECT_EQ(said({0x1p-11F, 1}, 0), kCoarse | kAnchored1);
  EXPECT_EQ(said({1}, 11), kCoarse | kAnchored1) << "another contributor's scale counts";
}

// The first element alone anchors, for others that have a number there; zeros say nothing.
TEST(Coarseness, LooksForTheFirstNumber) {
  for (uint32_t zeros = 1; zeros < kBlock; ++zeros) {
    std::vector<float> first(zeros, zeros % 3 ? 0.0F : -0.0F);
    EXPECT_EQ(said(first, 0), kAnchored1) << "zeros only";
    EXPECT_EQ(said(first, -126), kAnchored1) << "zeros beside denormals";
    first.push_back(1);
    EXPECT_EQ(said(first, 0), kAnchored1) << zeros;
    first.back() = 0x1p-11F;
    first.resize(kBlock, 1.0F);
    EXPECT_EQ(said(first, 0), kCoarse | kAnchored1) << zeros;
  }
}

TEST(Coarseness, BlocksWithoutNumbersAreAnchored) {
  EXPECT_EQ(said({0, 0, -0.0F}, sap::kExponentOfZero), kAnchored0 | kAnchored1);
  const float one = 1;
  const Payload payload(DataType::kFloat32, ReduceOp::kSum, kLanes, 2);
  const Scales scales{.exponents = {0, sap::kExponentOfZero}};
  EXPECT_EQ(payload.coarseness(reinterpret_cast<const std::byte*>(&one), 1, scales),
            kAnchored0 | kAnchored1);
}

TEST(Coarseness, ReachFitsTheLanes) {
  const auto reach = [](DataType type, HalfBits bits) {
    const Payload payload(type, ReduceOp::kSum, kLanes, 2, bits);
    const uint16_t one = type == DataType::kFloat16 ? 0x3c00 : 0x3f80;
    int found = 0;
    for (int8_t scale = 0; scale < 16; ++scale) {
      const uint8_t said =
          payload.coarseness(reinterpret_cast<const std::byte*>(&one), 1, {.exponents = {scale}});
      if (said & kAnchored0) found = int{scale};
    }
    return found;
  };
  EXPECT_EQ(reach(DataType::kBfloat16, HalfBits::k32), 10);
  EXPECT_EQ(reach(DataType::kBfloat16, HalfBits::k16), 5);
  EXPECT_EQ(reach(DataType::kFloat16, HalfBits::k16), 2);
}

TEST(Coarseness, ABlockIsCoarseUnlessBothAreAnchored) {
  EXPECT_FALSE(is_coarse(0));
  EXPECT_FALSE(is_coarse(kAnchored0));
  EXPECT_TRUE(is_coarse(kCoarse));
  EXPECT_TRUE(is_coarse(kCoarse | kAnchored0));
  EXPECT_TRUE(is_coarse(kCoarse | kAnchored1));
  EXPECT_FALSE(is_coarse(kCoarse | kAnchored0 | kAnchored1));
}

}  // namespace
}  // namespace slime
