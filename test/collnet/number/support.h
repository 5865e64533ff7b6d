// What the tests of number formats share: random data, a switch that adds, and floats by the book.
#pragma once

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "collnet/number/number.h"
#include "test/support/check_oracle.h"

namespace slime::number::test {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// A failure prints this; SLIME_SEED=n replays it.
inline uint64_t seed_or(uint64_t otherwise) {
  const char* text = std::getenv("SLIME_SEED");
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

inline Bytes random_bytes(Random& random, size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// What a switch does with two payloads. Slow and obvious: digit by digit in base 256.
inline void add_payload(sap::Format format, Bytes& sum, const Bytes& other) {
  const size_t width = sap::width_of(format) / 8;
  for (size_t number = 0; number < sum.size(); number += width) {
    unsigned carry = 0;
    for (size_t i = number + width; i-- > number;) {
      carry += static_cast<unsigned>(sum[i]) + static_cast<unsigned>(other[i]);
      sum[i] = static_cast<std::byte>(carry);
      carry >>= 8;
    }
  }
}

// IEEE 754 interchange formats.
struct FloatFormat {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int least_exponent() const { return 1 - bias(); }  // of normal numbers
};
inline FloatFormat float_format(DataType type) {
  if (type == DataType::kFloat16) return {5, 10};
  return {8, type == DataType::kFloat32 ? 23 : 7};
}

inline uint32_t bits_at(DataType type, const std::byte* elements, size_t i) {
  uint32_t bits = 0;  // a little-endian host
  std::memcpy(&bits, elements + i * element_bytes(type), element_bytes(type));
  return bits;
}
inline void set_bits(DataType type, Bytes& elements, size_t i, uint32_t bits) {
  std::memcpy(elements.data() + i * element_bytes(type), &bits, element_bytes(type));
}

inline double value_of(DataType type, uint32_t bits) {
  const FloatFormat format = float_format(type);
  const uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
  const int exponent =
      static_cast<int>(bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1));
  const bool negative = bits >> (format.fraction_bits + format.exponent_bits) & 1;
  double magnitude = 0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, format.least_exponent() - format.fraction_bits);
  } else {
    magnitude = std::ldexp(fraction + (1u << format.fraction_bits),
                           exponent - format.bias() - format.fraction_bits);
  }
  return negative ? -magnitude : magnitude;
}

// Distance of neighbours around a value.
inline double ulp(DataType type, double value) {
  const FloatFormat format = float_format(type);
  const int exponent = value == 0 ? format.least_exponent() : std::ilogb(value);
  return std::ldexp(1, std::max(exponent, format.least_exponent()) - format.fraction_bits);
}

inline double greatest(DataType type) {
  const FloatFormat format = float_format(type);
  return std::ldexp(2 - std::ldexp(1, -format.fraction_bits), format.bias());
}

// To nearest even, with infinity beyond the range.
inline double rounded(DataType type, double value) {
  if (value == 0) return value;
  const double unit = ulp(type, value);
  const double result = std::nearbyint(value / unit) * unit;
  return std::abs(result) > greatest(type) ? std::copysign(INFINITY, value) : result;
}

inline int log2_ceil(uint32_t n) {
  int c = 0;
  while ((uint64_t{1} << c) < n) ++c;
  return c;
}

struct FloatCase {
  DataType type;
  LaneWidth lanes;
  const char* name;
  int lane_bits() const { return lanes == LaneWidth::kNarrow ? 16 : 32; }
  Coding coding(uint32_t words, uint32_t workers) const {
    return {type, format_of(type, lanes), words, workers};
  }
};
inline constexpr FloatCase kFloatCases[] = {
    {DataType::kFloat32, LaneWidth::kWide, "fp32"},
    {DataType::kFloat16, LaneWidth::kWide, "fp16"},
    {DataType::kBfloat16, LaneWidth::kWide, "bf16"},
    {DataType::kFloat16, LaneWidth::kNarrow, "fp16_in_16_bits"},
    {DataType::kBfloat16, LaneWidth::kNarrow, "bf16_in_16_bits"},
};

}  // namespace slime::number::test
