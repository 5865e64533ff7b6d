// LL and LL128 lines, and sixteen-bit floats at the edges of their range.
#include "tools/perf/collective/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace slime::perf {
namespace {

class ReductionsTest : public testing::TestWithParam<const Reductions*> {
 protected:
  static void reduce(DataType type, const Operands& operands) {
    GetParam()->of[static_cast<size_t>(type)](operands);
  }
};

std::vector<char> some_bytes(size_t count) {
  std::vector<char> bytes(count);
  std::iota(bytes.begin(), bytes.end(), char{1});
  return bytes;
}

TEST(KernelsTest, LlLinesCarryTheDataAndTheFlag) {
  for (const size_t bytes : {1u, 3u, 4u, 7u, 8u, 9u, 64u, 1000u, 1023u}) {
    const std::vector<char> data = some_bytes(bytes);
    const size_t lines = (bytes + 7) / 8;
    std::vector<uint64_t> packed(2 * lines + 2, 0);
    pack(Protocol::kLl, packed.data(), data.data(), bytes, 42);
    EXPECT_EQ(packed[2 * lines], 0u) << "wrote behind the last line";
    EXPECT_EQ(ready_lines(Protocol::kLl, packed.data(), lines, 42), lines);
    EXPECT_EQ(ready_lines(Protocol::kLl, packed.data(), lines, 41), 0u);
    std::vector<char> unpacked(bytes + 1, 0);
    unpack(Protocol::kLl, unpacked.data(), packed.data(), bytes);
    EXPECT_EQ(std::memcmp(unpacked.data(), data.data(), bytes), 0) << bytes;
    EXPECT_EQ(unpacked[bytes], 0) << "wrote behind the data";
    reinterpret_cast<uint32_t*>(packed.data())[4 * (lines - 1) + 3] = 41;
    EXPECT_EQ(ready_lines(Protocol::kLl, packed.data(), lines, 42), lines - 1);
  }
}

TEST(KernelsTest, Ll128LinesCarryTheDataAndTheFlag) {
  for (const size_t bytes : {1u, 119u, 120u, 121u, 1200u, 7777u}) {
    const std::vector<char> data = some_bytes(bytes);
    const size_t lines = (bytes + 119) / 120;
    std::vector<uint64_t> packed(16 * (lines + 1), 0);
    pack(Protocol::kLl128, packed.data(), data.data(), bytes, 42);
    EXPECT_EQ(packed[16 * lines], 0u) << "wrote behind the last line";
    EXPECT_EQ(ready_lines(Protocol::kLl128, packed.data(), lines, 42), lines);
    std::vector<char> unpacked(bytes + 1, 0);
    unpack(Protocol::kLl128, unpacked.data(), packed.data(), bytes);
    EXPECT_EQ(std::memcmp(unpacked.data(), data.data(), bytes), 0) << bytes;
    EXPECT_EQ(unpacked[bytes], 0) << "wrote behind the data";
    packed[16 * (lines - 1) + 15] = 41;
    EXPECT_EQ(ready_lines(Protocol::kLl128, packed.data(), lines, 42), lines - 1);
  }
}

// Adding zero must give back every number, and keep infinities and NaNs what they are.
TEST_P(ReductionsTest, HalfAndBfloatSurviveTheWayThroughFloat) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    const uint16_t exponent = type == DataType::kFloat16 ? 0x7c00 : 0x7f80;
    std::vector<uint16_t> all(65536), zero(65536, 0), sum(65536);
    std::iota(all.begin(), all.end(), uint16_t{0});
    reduce(type, {RedOp::kSum, sum.data(), all.data(), zero.data(), all.size(), 0});
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_nan = (i & exponent) == exponent && (i & ~(exponent | 0x8000u)) != 0;
      if (is_nan) {
        EXPECT_EQ(sum[i] & exponent, exponent);
        EXPECT_NE(sum[i] & ~(exponent | 0x8000), 0);
      } else if (i == 0x8000) {
        EXPECT_EQ(sum[i], 0);  // -0 + 0 is 0
      } else {
        ASSERT_EQ(sum[i], i);
      }
    }
  }
}

TEST_P(ReductionsTest, HalfRoundsToNearestEven) {
  // 2048 + 1 lies between 2048 and 2050, 2050 + 1 between 2050 and 2052: to the even mantissa.
  const std::vector<uint16_t> a = {0x6800, 0x6801, 0x7bff}, b = {0x3c00, 0x3c00, 0x7bff};
  std::vector<uint16_t> sum(3);
  reduce(DataType::kFloat16, {RedOp::kSum, sum.data(), a.data(), b.data(), 3, 0});
  EXPECT_EQ(sum, (std::vector<uint16_t>{0x6800, 0x6802, 0x7c00}));  // the last one overflows
}

TEST_P(ReductionsTest, IntegersWrap) {
  const std::vector<int32_t> a = {INT32_MAX, INT32_MIN, 1 << 16}, b = {1, -1, 1 << 16};
  std::vector<int32_t> sum(3), product(3);
  reduce(DataType::kInt32, {RedOp::kSum, sum.data(), a.data(), b.data(), 3, 0});
  reduce(DataType::kInt32, {RedOp::kProd, product.data(), a.data(), b.data(), 3, 0});
  EXPECT_EQ(sum, (std::vector<int32_t>{INT32_MIN, INT32_MAX, 1 << 17}));
  EXPECT_EQ(product, (std::vector<int32_t>{INT32_MAX, INT32_MIN, 0}));
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, ReductionsTest,
                         testing::Values(reductions().at(SimdLevel::kPortable),
                                         &reductions().best()),
                         [](const auto& info) {
                           return std::to_string(info.index) + info.param->name;
                         });

}  // namespace
}  // namespace slime::perf
