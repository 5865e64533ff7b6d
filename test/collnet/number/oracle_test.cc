// Allreduce of floats through integer lanes, against sums in long double (64 bits of precision).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "test/collnet/number/support.h"

namespace slime::number {
namespace {

using test::bits_at;
using test::Bytes;
using test::FloatCase;
using test::kFloatCases;
using test::Random;
using test::seed_or;
using test::set_bits;
using test::value_of;

constexpr uint32_t kWords = 16;  // blocks of 8 or 16 elements: counts around all edges are few

std::vector<uint32_t> worker_counts() {
  std::vector<uint32_t> counts(33);
  std::iota(counts.begin(), counts.end(), 1);
  counts.insert(counts.end(), {64, 127, 255});
  return counts;
}

// What the host side and the switch do to a tensor, packet by packet.
struct Allreduce {
  Coding coding;
  std::vector<Bytes> inputs;  // one per worker
  size_t count = 0;           // elements

  Bytes output;
  std::vector<int8_t> exponents;  // of all blocks
  uint8_t special = 0;

  void run() {
    const size_t block = packet_elements(coding) / 2, bytes = element_bytes(coding.type);
    output.assign(count * bytes, std::byte{0x5a});
    exponents.assign(count / block + 3, sap::kExponentOfZero);
    for (const Bytes& input : inputs) {
      std::vector<Block> blocks(exponents.size());
      block_exponents(coding.type, input.data(), count, block, blocks.data());
      for (size_t b = 0; b < blocks.size(); ++b) {
        exponents[b] = std::max(exponents[b], blocks[b].exponent);
        special |= blocks[b].special;
      }
    }
    for (size_t at = 0; at < count; at += 2 * block) packet(at, at / block);
  }

  void packet(size_t at, size_t block) {
    const size_t here = std::min(count - at, packet_elements(coding));
    const size_t offset = at * element_bytes(coding.type);
    Bytes sum(4 * coding.lanes), one(4 * coding.lanes);
    uint32_t check = 0;
    for (const Bytes& input : inputs) {
      check += 9 + pack(coding, ReduceOp::kSum, &exponents[block], input.data() + offset, here,
                        one.data());
      test::add_payload(coding.format, sum, one);
    }
    const sap::Contributors all{coding.workers, coding.workers};  // of factor 1 each
    EXPECT_TRUE(sap::verifies(coding.format, sum, check, 9, all));
    unpack(coding, &exponents[block], sum.data(), output.data() + offset, here);
  }

  double input(size_t worker, size_t i) const {
    return value_of(coding.type, bits_at(coding.type, inputs[worker].data(), i));
  }
  double result(size_t i) const {
    return value_of(coding.type, bits_at(coding.type, output.data(), i));
  }
  long double reference(size_t i) const {
    long double sum = 0;
    for (size_t w = 0; w < inputs.size(); ++w) sum += input(w, i);
    return sum;
  }
};

// The bound of number.h.
long double bound(const FloatCase& c, const Allreduce& a, size_t i) {
  const uint32_t n = a.coding.workers;
  const int8_t x = a.exponents[i / (packet_elements(a.coding) / 2)];
  const int power = test::log2_ceil(n) + int{x} + 1 - c.lane_bits();
  const bool clamps =
      std::has_single_bit(n) && c.lane_bits() == 16 && c.type == DataType::kFloat16 && n >= 64;
  const long double lanes = (clamps ? 2.0L : 1.0L) * n * std::ldexp(1.0L, power);
  const double reference = static_cast<double>(a.reference(i));
  return lanes + test::ulp(c.type, std::abs(reference) + static_cast<double>(lanes)) / 2;
}

void expect_within_bound(const FloatCase& c, const Allreduce& a) {
  // Beyond this the result is rightly infinite.
  const double top = test::greatest(c.type) + test::ulp(c.type, test::greatest(c.type)) / 2;
  for (size_t i = 0; i < a.count; ++i) {
    const long double reference = a.reference(i), error = bound(c, a, i);
    const double result = a.result(i);
    if (std::isinf(result)) {
      EXPECT_GE(std::abs(reference) + error, top) << i;
      EXPECT_EQ(std::signbit(result), reference < 0) << i;
    } else {
      EXPECT_LE(std::abs(result - reference), error * (1 + 0x1p-20L)) << "element " << i;
    }
  }
}

using Generator = std::function<uint32_t(Random&, size_t worker, size_t i)>;

Allreduce allreduce(const FloatCase& c, uint32_t workers, size_t count, Random& random,
                    const Generator& bits) {
  Allreduce a{c.coding(kWords, workers), {}, count, {}, {}, 0};
  for (uint32_t w = 0; w < workers; ++w) {
    a.inputs.emplace_back(count * element_bytes(c.type));
    for (size_t i = 0; i < count; ++i) set_bits(c.type, a.inputs[w], i, bits(random, w, i));
  }
  a.run();
  return a;
}

struct Shape {
  uint32_t fraction, exponent_field, sign;  // masks
  explicit Shape(DataType type) {
    const test::FloatFormat format = test::float_format(type);
    fraction = (1u << format.fraction_bits) - 1;
    exponent_field = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
    sign = 1u << (format.exponent_bits + format.fraction_bits);
  }
};

uint32_t any_finite(const Shape& shape, uint64_t random) {
  const auto bits =
      static_cast<uint32_t>(random) & (shape.fraction | shape.exponent_field | shape.sign);
  return (bits & shape.exponent_field) == shape.exponent_field ? bits & ~shape.exponent_field
                                                               : bits;
}

class OracleTest : public testing::TestWithParam<FloatCase> {
 protected:
  const uint64_t seed_ = seed_or(77);
  Random random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "SLIME_SEED=" + std::to_string(seed_)};
  const FloatCase case_ = GetParam();
  const Shape shape_{case_.type};
  const size_t block_ = packet_elements(case_.coding(kWords, 1)) / 2;
  const int bits_ = static_cast<int>(significand_bits(case_.type));
};

TEST_P(OracleTest, AllFiniteValuesMeetTheBound) {
  for (const uint32_t n : worker_counts()) {
    SCOPED_TRACE("workers " + std::to_string(n));
    const auto a = allreduce(case_, n, 6 * block_, random_,
                             [&](Random& r, size_t, size_t) { return any_finite(shape_, r()); });
    EXPECT_EQ(a.special, 0);
    expect_within_bound(case_, a);
  }
}

// Values of like size, of which no exponent hides the others: blocks from 2^-149 to 2^128.
TEST_P(OracleTest, BlocksOfEverySizeMeetTheBound) {
  const uint32_t fields = shape_.exponent_field / (shape_.fraction + 1);
  for (const uint32_t n : worker_counts()) {
    SCOPED_TRACE("workers " + std::to_string(n));
    for (uint32_t field = 0; field < fields; field += 1 + random_() % 16) {
      const auto near = [&](Random& r, size_t, size_t) {
        const uint32_t below = static_cast<uint32_t>(r() % 3);
        const uint32_t one = field < below ? 0 : field - below;
        return (one * (shape_.fraction + 1)) |
               (static_cast<uint32_t>(r()) & (shape_.fraction | shape_.sign));
      };
      expect_within_bound(case_, allreduce(case_, n, block_, random_, near));
    }
  }
}

TEST_P(OracleTest, DenormalsMeetTheBoundAndAreExactIn32Bits) {
  const auto denormal = [&](Random& r, size_t, size_t i) {
    // Few bits set in some elements: the least values there are.
    const uint32_t mask = i % 3 == 0 ? 3 : shape_.fraction;
    return static_cast<uint32_t>(r()) & (mask | shape_.sign);
  };
  for (const uint32_t n : {1u, 2u, 3u, 16u, 33u, 127u, 128u}) {
    const auto a = allreduce(case_, n, 2 * block_, random_, denormal);
    expect_within_bound(case_, a);
    if (case_.lanes == LaneWidth::kNarrow) continue;
    for (size_t i = 0; i < a.count; ++i) {
      const double expected = test::rounded(case_.type, static_cast<double>(a.reference(i)));
      EXPECT_EQ(a.result(i), expected) << n;
    }
  }
}

TEST_P(OracleTest, ZerosGivePlusZero) {
  const auto zero = [&](Random& r, size_t, size_t) {
    return static_cast<uint32_t>(r()) & shape_.sign;
  };
  const auto a = allreduce(case_, 5, 4 * block_, random_, zero);
  for (const int8_t exponent : a.exponents) EXPECT_EQ(exponent, sap::kExponentOfZero);
  for (const std::byte byte : a.output) EXPECT_EQ(byte, std::byte{0});
}

// The greatest value below each power of two, from all: the sum must not leave the lane.
TEST_P(OracleTest, JustBelowPowersOfTwoNothingOverflows) {
  const uint32_t step = shape_.fraction + 1;
  for (uint32_t n = 1; n <= 255; ++n) {
    for (const uint32_t field :
         {0u, 1u, shape_.exponent_field / step / 2, shape_.exponent_field / step - 1}) {
      const auto alike = [&](Random&, size_t, size_t i) {
        return field * step | shape_.fraction | (i % 2 ? shape_.sign : 0);
      };
      const auto a = allreduce(case_, n, 2, random_, alike);
      expect_within_bound(case_, a);
      EXPECT_EQ(a.result(0), -a.result(1));
      EXPECT_GT(a.result(0), 0);
    }
  }
}

// Sums around the end of the range that lanes hold exactly: infinite exactly where IEEE says so.
TEST_P(OracleTest, OverflowIsInfinityWhereTheReferenceIs) {
  const uint32_t top = shape_.exponent_field - 1, inf = shape_.exponent_field;
  const auto run = [&](uint32_t n, auto bits) {
    const auto a = allreduce(case_, n, 2, random_, [&](Random&, size_t w, size_t i) {
      return bits(w) | (i ? shape_.sign : 0);
    });
    const double expected = test::rounded(case_.type, static_cast<double>(a.reference(0)));
    if (case_.lanes == LaneWidth::kWide || n <= 16) {
      EXPECT_EQ(a.result(0), expected) << n;
      EXPECT_EQ(a.result(1), -expected) << n;
    }
    expect_within_bound(case_, a);
    return a.result(0);
  };
  for (const uint32_t n : {1u, 2u, 3u, 8u, 33u, 127u}) {
    EXPECT_EQ(std::isinf(run(n, [&](size_t) { return top; })), n > 1) << n;
  }
  // The greatest value, and half an ulp of it or the next value below that.
  const test::FloatFormat format = test::float_format(case_.type);
  const uint32_t half_ulp =
      inf - (static_cast<uint32_t>(format.fraction_bits + 2) << format.fraction_bits);
  if (case_.lanes == LaneWidth::kNarrow) return;
  EXPECT_TRUE(std::isinf(run(2, [&](size_t w) { return w ? half_ulp : top; })));
  if (case_.type == DataType::kFloat32) return;  // 31 bits cannot hold the next
  EXPECT_FALSE(std::isinf(run(2, [&](size_t w) { return w ? half_ulp - 1 : top; })));
}

TEST_P(OracleTest, SpecialsAreFoundInTheirBlockOnly) {
  const uint32_t inf = shape_.exponent_field;
  const struct {
    uint32_t bits;
    uint8_t special;
  } kinds[] = {{inf | 1, sap::special::kNan},
               {inf | shape_.fraction | shape_.sign, sap::special::kNan},
               {inf, sap::special::kPlusInfinity},
               {inf | shape_.sign, sap::special::kMinusInfinity},
               {inf - 1, 0},
               {shape_.sign, 0}};
  const size_t size = 37, blocks = 4, count = size * blocks - 5;
  for (const auto& kind : kinds) {
    for (size_t at = 0; at < count; ++at) {
      Bytes elements(count * element_bytes(case_.type));
      for (size_t i = 0; i < count; ++i) set_bits(case_.type, elements, i, 1 + (i / size));
      set_bits(case_.type, elements, at, kind.bits);
      Block found[blocks + 1];
      found[blocks].special = 99;
      block_exponents(case_.type, elements.data(), count, size, found);
      for (size_t b = 0; b < blocks; ++b) {
        ASSERT_EQ(found[b].special, at / size == b ? kind.special : 0) << at;
        if (found[b].special == 0) continue;
        // The others of the block, denormals, still count.
        const int exponent = case_.type == DataType::kFloat16 ? (b < 1   ? -24
                                                                 : b < 3 ? -23
                                                                         : -22)
                                                              : -126;
        ASSERT_EQ(found[b].exponent, exponent) << b;
      }
      ASSERT_EQ(found[blocks].special, 99);
    }
  }
}

TEST_P(OracleTest, ExponentsAreThoseOfTheGreatest) {
  for (int trial = 0; trial < 20'000; ++trial) {
    const uint32_t bits = any_finite(shape_, random_());
    Bytes element(element_bytes(case_.type));
    set_bits(case_.type, element, 0, bits);
    Block block;
    block_exponents(case_.type, element.data(), 1, 8, &block);
    const double value = value_of(case_.type, bits);
    const int expected = value == 0 ? -127 : std::max(std::ilogb(value), -126);
    ASSERT_EQ(block.exponent, expected) << value;
  }
}

TEST_P(OracleTest, WorkersInAnyOrderGiveTheSameBits) {
  auto a = allreduce(case_, 33, 6 * block_, random_,
                     [&](Random& r, size_t, size_t) { return any_finite(shape_, r()); });
  for (int trial = 0; trial < 10; ++trial) {
    const Bytes before = a.output;
    std::shuffle(a.inputs.begin(), a.inputs.end(), random_);
    a.run();
    EXPECT_EQ(a.output, before);
  }
}

TEST_P(OracleTest, EveryCountMeetsTheBound) {
  for (size_t count = 0; count <= 3 * block_ + 1; ++count) {
    SCOPED_TRACE("count " + std::to_string(count));
    const auto a = allreduce(case_, 3, count, random_,
                             [&](Random& r, size_t, size_t) { return any_finite(shape_, r()); });
    expect_within_bound(case_, a);
  }
}

// Half an ulp of a block's greatest value, 2^(x - p).
long double half_ulp_of_block(const FloatCase& c, const Allreduce& a, size_t i) {
  const int8_t x = a.exponents[i / (packet_elements(a.coding) / 2)];
  return std::ldexp(1.0L, int{x} - static_cast<int>(significand_bits(c.type)));
}

// One at the beginning of the block; the rest is 3/2 of a unit, which rounds to 2, at all.
Allreduce worst_case(const FloatCase& c, uint32_t workers, size_t count, Random& random) {
  const int unit = test::log2_ceil(workers) - 14;
  const test::FloatFormat format = test::float_format(c.type);
  const auto one = static_cast<uint32_t>(format.bias()) << format.fraction_bits;
  const uint32_t three_halves =
      (static_cast<uint32_t>(format.bias() + unit) << format.fraction_bits) |
      1u << (format.fraction_bits - 1);
  return allreduce(c, workers, count, random,
                   [=](Random&, size_t, size_t i) { return i ? three_halves : one; });
}

// Of what the lanes add to the error, in half ulps of the block's greatest value.
long double error_of_lanes(const FloatCase& c, const Allreduce& a, size_t i) {
  const long double reference = a.reference(i), result = a.result(i);
  if (std::isinf(a.result(i))) return 0;  // rightly, as other tests see
  const auto near = static_cast<double>(std::max(std::abs(reference), std::abs(result)));
  const long double rounded = test::ulp(c.type, near) / 2;
  return (std::abs(result - reference) - rounded) / half_ulp_of_block(c, a, i);
}

void expect_half_an_ulp(const FloatCase& c, const Allreduce& a) {
  for (size_t i = 0; i < a.count; ++i) ASSERT_LE(error_of_lanes(c, a, i), 1) << "element " << i;
}

// The bound that makes narrow lanes as good as the type is kept for as many workers as it says, and
// reached, to the last bit, by the worst there is: for one more it would be broken.
TEST_P(OracleTest, NarrowLanesAddAtMostHalfAnUlpOfTheBlocksGreatest) {
  if (case_.lanes != LaneWidth::kNarrow) return;
  const uint32_t most = case_.type == DataType::kBfloat16 ? 8 : 4;
  for (uint32_t n = 1; n <= 32; ++n) {
    SCOPED_TRACE("workers " + std::to_string(n));
    const auto worst = worst_case(case_, n, block_, random_);
    const long double error = std::abs(worst.result(1) - worst.reference(1));
    const double half_ulps = std::ldexp(n, test::log2_ceil(n) - 15 + bits_);
    EXPECT_EQ(error / half_ulp_of_block(case_, worst, 1), half_ulps);
    ASSERT_TRUE(narrow_suffices(case_.type, n) == (n <= most) && (half_ulps <= 1) == (n <= most));
    for (int trial = 0; n <= most && trial < 50; ++trial) {
      const uint32_t field = any_finite(shape_, random_()) & shape_.exponent_field;
      const auto alike = [&](Random& r, size_t, size_t i) {
        if (trial % 2 && i % 3) return any_finite(shape_, r());
        return field | (static_cast<uint32_t>(r()) & (shape_.fraction | shape_.sign));
      };
      ASSERT_NO_FATAL_FAILURE(
          expect_half_an_ulp(case_, allreduce(case_, n, 4 * block_, random_, alike)));
    }
  }
}

// Exact down to x - (15 - p - c), and not below: there a number with all bits set is rounded.
TEST_P(OracleTest, NarrowLanesCarryNumbersNearTheGreatestExactly) {
  if (case_.lanes != LaneWidth::kNarrow) return;
  for (const uint32_t n : {1u, 2u, 3u, 4u, 8u}) {
    const int depth = 15 - bits_ - test::log2_ceil(n);
    for (const bool beyond : {false, true}) {
      const int below = depth + beyond;
      if (below < 0) continue;
      const uint32_t step = shape_.fraction + 1, middle = shape_.exponent_field / step / 2;
      // One worker has a number, so that the sum needs no rounding; the first makes the scale.
      const auto a = allreduce(case_, n, block_, random_, [&](Random& r, size_t w, size_t i) {
        if (i == 0) return middle * step;
        if (w != i % n) return 0u;
        const auto any = static_cast<uint32_t>(r()) & (shape_.fraction | shape_.sign);
        return (middle - static_cast<uint32_t>(below)) * step | (beyond ? shape_.fraction : any);
      });
      for (size_t i = 1; i < block_; ++i) {
        EXPECT_EQ(a.result(i) == a.reference(i), !beyond) << n << " workers, element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OracleTest, testing::ValuesIn(kFloatCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace slime::number
