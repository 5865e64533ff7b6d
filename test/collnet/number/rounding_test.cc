// Every number and every element is rounded once, to nearest even: bit by bit, not by a bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "test/collnet/number/support.h"

namespace slime::number {
namespace {

using test::Bytes;
using test::FloatCase;
using test::Random;

class RoundingTest : public testing::TestWithParam<FloatCase> {
 protected:
  // A power of two, a tie or anything else, of any length.
  int32_t random_number() {
    const int bits = 1 + static_cast<int>(random_() % (case_.lane_bits() - 1));
    const int64_t most = (int64_t{1} << (case_.lane_bits() - 1)) - 1;
    auto number = static_cast<int64_t>(random_() & ((uint64_t{1} << bits) - 1));
    if (random_() % 2) number &= -(int64_t{1} << random_() % bits);
    number += random_() % 4 ? 0 : static_cast<int64_t>(random_() % 3) - 1;
    number = std::min(number, most);
    return static_cast<int32_t>(random_() % 2 ? number : -number);
  }
  void put(Bytes& payload, size_t i, int32_t number) const {
    const size_t width = static_cast<size_t>(case_.lane_bits()) / 8;
    for (size_t b = 0; b < width; ++b) {
      payload[i * width + b] = static_cast<std::byte>(number >> 8 * (width - 1 - b));
    }
  }
  int32_t get(const Bytes& payload, size_t i) const {
    const std::byte* at = payload.data() + i * static_cast<size_t>(case_.lane_bits()) / 8;
    return case_.lane_bits() == 16 ? static_cast<int16_t>(sap::wire::get16(at))
                                   : static_cast<int32_t>(sap::wire::get32(at));
  }
  int scale_exponent(const Coding& coding, int exponent) const {
    return case_.lane_bits() - 1 - test::log2_ceil(coding.workers) - (exponent + 1);
  }

  const uint64_t seed_ = test::seed_or(99);
  Random random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "SLIME_SEED=" + std::to_string(seed_)};
  const FloatCase case_ = GetParam();
};

TEST_P(RoundingTest, SumsBecomeTheNearestElement) {
  for (int trial = 0; trial < 3000; ++trial) {
    const Coding coding = case_.coding(16, 1 + static_cast<uint32_t>(random_() % 255));
    const size_t count = packet_elements(coding), block = count / 2;
    const int8_t exponents[2] = {static_cast<int8_t>(random_() % 255 - 127),
                                 static_cast<int8_t>(random_() % 20 - 10)};
    Bytes payload(4 * coding.lanes), out(count * element_bytes(case_.type));
    std::vector<double> exact(count);
    for (size_t i = 0; i < count; ++i) {
      const int32_t number = random_number();
      const int k = scale_exponent(coding, exponents[i / block]);
      put(payload, i, number);
      exact[i] = std::ldexp(number, -k);
    }
    unpack(coding, exponents, payload.data(), out.data(), count);
    for (size_t i = 0; i < count; ++i) {
      const double found = test::value_of(case_.type, test::bits_at(case_.type, out.data(), i));
      ASSERT_EQ(found, test::rounded(case_.type, exact[i])) << exact[i];
      ASSERT_EQ(std::signbit(found), std::signbit(exact[i])) << exact[i];
    }
  }
}

double float_within(int64_t floor) {
  const auto nearest = static_cast<float>(floor);
  return nearest > static_cast<double>(floor) ? std::nextafter(nearest, 0.0F) : nearest;
}

TEST_P(RoundingTest, ElementsBecomeTheNearestNumber) {
  for (int trial = 0; trial < 3000; ++trial) {
    const Coding coding = case_.coding(16, 1 + static_cast<uint32_t>(random_() % 255));
    const size_t count = packet_elements(coding), block = count / 2;
    Bytes in = test::random_bytes(random_, count * element_bytes(case_.type));
    int8_t exponents[2];
    for (size_t b = 0; b < 2; ++b) {
      // Below what some elements need: those are clamped.
      exponents[b] = static_cast<int8_t>(random_() % 255 - 127);
    }
    Bytes payload(4 * coding.lanes);
    pack(coding, ReduceOp::kSum, exponents, in.data(), count, payload.data());
    const int64_t floor = ((int64_t{1} << (case_.lane_bits() - 1)) - 1) / coding.workers;
    const double limit = element_bytes(case_.type) == 2 ? float_within(floor) : double(floor);
    for (size_t i = 0; i < count; ++i) {
      const double value = test::value_of(case_.type, test::bits_at(case_.type, in.data(), i));
      if (!std::isfinite(value)) {
        ASSERT_LE(std::abs(get(payload, i)), limit);
        continue;
      }
      const double scaled = std::ldexp(value, scale_exponent(coding, exponents[i / block]));
      ASSERT_EQ(get(payload, i), std::clamp(std::nearbyint(scaled), -limit, limit)) << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoundingTest, testing::ValuesIn(test::kFloatCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace slime::number
