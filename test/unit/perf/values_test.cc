// The reference against the kernels, for every type, operation and instruction set: they share no
// code, so agreement on exact bits says that both are right.
#include "tools/perf/values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/perf/collective/kernels.h"

namespace slime::perf {
namespace {

constexpr size_t kCount = 2003;  // no multiple of any vector or block
constexpr uint64_t kFirst = 5;

class ValuesTest : public testing::TestWithParam<std::tuple<DataType, RedOp, int>> {};

// As a ring does it: from some rank on, in order, the quotient taken at the last rank.
std::vector<char> ring_result(const Reductions& with, const Pattern& pattern) {
  Heartbeat heartbeat;
  std::vector<char> result(kCount * size_of(pattern.type)), own(result.size());
  fill(pattern, 1 % pattern.ranks, kFirst, kCount, result.data(), &heartbeat);
  for (int i = 1; i < pattern.ranks; ++i) {
    fill(pattern, (1 + i) % pattern.ranks, kFirst, kCount, own.data(), &heartbeat);
    const bool last = i + 1 == pattern.ranks;
    const RedOp op = pattern.op == RedOp::kAvg && !last ? RedOp::kSum : pattern.op;
    with.of[static_cast<size_t>(pattern.type)]({op, result.data(), result.data(), own.data(),
                                                kCount, static_cast<uint32_t>(pattern.ranks)});
  }
  return result;
}

TEST_P(ValuesTest, KernelsAgreeWithTheDefinition) {
  const auto [type, op, ranks] = GetParam();
  const Pattern pattern{type, op, ranks, 7};
  Heartbeat heartbeat;
  for (const Reductions* with : {reductions().at(SimdLevel::kPortable), &reductions().best()}) {
    std::vector<char> result = ring_result(*with, pattern);
    ASSERT_EQ(count_wrong(pattern, -1, kFirst, kCount, result.data(), &heartbeat), 0u)
        << with->name;
    result[result.size() / 3] ^= 0x10;
    EXPECT_EQ(count_wrong(pattern, -1, kFirst, kCount, result.data(), &heartbeat), 1u)
        << "one flipped bit must be one wrong element";
  }
}

INSTANTIATE_TEST_SUITE_P(All, ValuesTest,
                         testing::Combine(testing::Values(DataType::kInt8, DataType::kUint8,
                                                          DataType::kInt32, DataType::kUint32,
                                                          DataType::kInt64, DataType::kUint64,
                                                          DataType::kFloat16, DataType::kFloat32,
                                                          DataType::kFloat64, DataType::kBfloat16),
                                          testing::Values(RedOp::kSum, RedOp::kProd, RedOp::kMax,
                                                          RedOp::kMin, RedOp::kAvg),
                                          testing::Values(2, 3, 8, 300)),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param))) + "_" +
                                  std::string(name_of(std::get<1>(info.param))) + "_" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST(ValuesTest, CopiesOfAnotherRankPlaceOrRepetitionAreWrong) {
  Heartbeat heartbeat;
  for (size_t type = 0; type < kDataTypes; ++type) {
    Pattern pattern{static_cast<DataType>(type), RedOp::kNone, 4, 1};
    std::vector<char> data(kCount * size_of(pattern.type));
    fill(pattern, 2, 0, kCount, data.data(), &heartbeat);
    EXPECT_EQ(count_wrong(pattern, 2, 0, kCount, data.data(), &heartbeat), 0u);
    EXPECT_GT(count_wrong(pattern, 3, 0, kCount, data.data(), &heartbeat), kCount / 2);
    EXPECT_GT(count_wrong(pattern, 2, 1, kCount, data.data(), &heartbeat), kCount / 2);
    pattern.repetition = 2;
    EXPECT_GT(count_wrong(pattern, 2, 0, kCount, data.data(), &heartbeat), kCount / 2);
    std::memset(data.data(), kPoison, data.size());
    EXPECT_GT(count_wrong(pattern, 2, 0, kCount, data.data(), &heartbeat), kCount / 2);
  }
}

TEST(ValuesTest, EveryElementPulses) {
  Heartbeat heartbeat;
  std::vector<float> data(10 * kValuesPerBeat);
  fill({DataType::kFloat32, RedOp::kSum, 2, 0}, 0, 0, data.size(), data.data(), &heartbeat);
  EXPECT_EQ(heartbeat.count(), 10u);
}

TEST(ValuesTest, OnesAreOnes) {
  std::vector<uint16_t> half(8), bfloat(8);
  fill_ones(DataType::kFloat16, 16, half.data());
  fill_ones(DataType::kBfloat16, 16, bfloat.data());
  EXPECT_EQ(half[7], 0x3c00);
  EXPECT_EQ(bfloat[7], 0x3f80);
}

TEST(ValuesTest, OverwrittenElementsAreCountedNotTheirBytes) {
  std::vector<char> memory(64, static_cast<char>(kPoison));
  EXPECT_EQ(count_overwritten(DataType::kFloat64, memory), 0u);
  std::fill_n(memory.begin() + 8, 9, 'x');  // a whole double, and a byte of the next
  EXPECT_EQ(count_overwritten(DataType::kFloat64, memory), 2u);
  EXPECT_EQ(count_overwritten(DataType::kInt8, memory), 9u);
}

}  // namespace
}  // namespace slime::perf
