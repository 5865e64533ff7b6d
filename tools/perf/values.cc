#include "tools/perf/values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

// -O2 vectorises only what is certain to pay off.
#pragma GCC optimize("O3")

namespace slime::perf {
namespace {

// Elements are worked with as bits: integers in two's complement of 64 bits, floats as doubles.
struct Kind {
  bool is_float, is_signed;
  int mantissa, bias;  // of floats
  uint64_t limit;      // results need no more, so that every order of additions is exact
};
constexpr std::array<Kind, kDataTypes> kKinds = {{
    {false, true, 0, 0, INT8_MAX},
    {false, false, 0, 0, UINT8_MAX},
    {false, true, 0, 0, INT32_MAX},
    {false, false, 0, 0, UINT32_MAX},
    {false, true, 0, 0, INT64_MAX},
    {false, false, 0, 0, UINT64_MAX},
    {true, true, 10, 15, uint64_t{1} << 11},
    {true, true, 23, 127, uint64_t{1} << 24},
    {true, true, 52, 1023, uint64_t{1} << 53},
    {true, true, 7, 127, uint64_t{1} << 8},
}};

inline uint32_t mix(uint32_t x) {  // a bijection with good avalanche (Wellons, "lowbias32")
  x ^= x >> 16;
  x *= 0x7feb352d;
  x ^= x >> 15;
  x *= 0x846ca68b;
  return x ^ x >> 16;
}

inline uint64_t hash(uint64_t index, uint32_t salt) {
  const uint32_t low = mix(static_cast<uint32_t>(index) + salt);
  const uint32_t high = mix(low ^ 0x9e3779b9u ^ static_cast<uint32_t>(index >> 32));
  return static_cast<uint64_t>(high) << 32 | low;
}

uint32_t salt_of(const Pattern& pattern, int rank) {
  return mix(mix(pattern.repetition + 1) + static_cast<uint32_t>(rank) * 0x9e3779b9u);
}

// Rounds to nearest even; zeros and normal numbers only, as no others occur.
inline uint64_t float_bits(double value, const Kind& kind, size_t width) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (kind.mantissa == 52) return bits;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const int shift = 52 - kind.mantissa;
  const uint64_t moved = magnitude - (static_cast<uint64_t>(1023 - kind.bias) << 52);
  const uint64_t half = (uint64_t{1} << (shift - 1)) - 1 + (moved >> shift & 1);
  const uint64_t rounded = magnitude == 0 ? 0 : (moved + half) >> shift;
  return bits >> 63 << (8 * width - 1) | rounded;
}

// One rank's part, with what does not depend on the index worked out before.
struct Input {
  Input(const Pattern& pattern, int rank)
      : kind(kKinds[static_cast<size_t>(pattern.type)]),
        combine(pattern.combine),
        rank(static_cast<uint32_t>(rank)),
        ranks(static_cast<uint32_t>(pattern.ranks)),
        salt(salt_of(pattern, rank)),
        common_salt(salt_of(pattern, -1)),
        limit(rank >= 0 && static_cast<uint64_t>(rank) >= kind.limit
                  ? 0
                  : std::bit_floor(std::max<uint64_t>(1, kind.limit / ranks))) {}

  uint64_t integer(uint64_t index) const {
    const uint64_t random = hash(index, salt);
    if (combine != Combine::kAvg) return random;
    if (limit == 0) return 0;
    const uint64_t magnitude = (random & (limit - 1)) | (random >> 63 & (limit == 1));
    return kind.is_signed && (random >> 62 & 1) != 0 ? -magnitude : magnitude;
  }
  double real(uint64_t index) const {
    const uint64_t random = hash(index, salt);
    if (combine == Combine::kSum || combine == Combine::kAvg) {
      if (limit == 0) return 0;
      return static_cast<double>(static_cast<int64_t>(random & (2 * limit - 1)) -
                                 static_cast<int64_t>(limit));
    }
    if (combine != Combine::kProd) {
      return assemble(random >> 63, static_cast<int>(random >> 58 & 15) - 7, random);
    }
    // One rank has a whole mantissa and the others powers of two: the product is exact. Only the
    // first eight ranks move the exponent, so that it stays in the range of a half.
    const bool chosen = mix(static_cast<uint32_t>(index) ^ common_salt) % ranks == rank;
    const int exponent = rank < 8 ? static_cast<int>(random >> 60) % 3 - 1 : 0;
    return assemble(random >> 63, chosen ? 0 : exponent, chosen ? random : 0);
  }
  double assemble(uint64_t sign, int exponent, uint64_t random) const {
    const uint64_t mantissa = random & ((uint64_t{1} << kind.mantissa) - 1);
    return std::bit_cast<double>(sign << 63 | static_cast<uint64_t>(1023 + exponent) << 52 |
                                 mantissa << (52 - kind.mantissa));
  }

  const Kind kind;
  const Combine combine;
  const uint32_t rank, ranks, salt, common_salt;
  const uint64_t limit;
};

// In the order of the numbers that the lowest `width` bytes of `bits` are.
inline uint64_t order_of(uint64_t bits, bool is_signed, size_t width) {
  const size_t rest = 64 - 8 * width;
  if (!is_signed) return bits << rest >> rest;
  const auto extended = static_cast<int64_t>(bits << rest) >> rest;
  return static_cast<uint64_t>(extended) ^ uint64_t { 1 } << 63;
}

uint64_t combine_integers(const std::vector<Input>& inputs, uint64_t index, size_t width) {
  const Combine combine = inputs[0].combine;
  const bool is_signed = inputs[0].kind.is_signed;
  uint64_t wrapped = combine == Combine::kProd ? 1 : 0, extreme = inputs[0].integer(index);
  for (const Input& input : inputs) {
    const uint64_t value = input.integer(index);
    wrapped = combine == Combine::kProd ? wrapped * value : wrapped + value;
    const uint64_t one = order_of(value, is_signed, width);
    const uint64_t best = order_of(extreme, is_signed, width);
    if (combine == Combine::kMax ? one > best : one < best) extreme = value;
  }
  if (combine == Combine::kMax || combine == Combine::kMin) return extreme;
  if (combine != Combine::kAvg) return wrapped;
  const auto count = static_cast<int64_t>(inputs.size());
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(wrapped) / count)
                   : wrapped / inputs.size();
}

double combine_reals(const std::vector<Input>& inputs, uint64_t index) {
  const Combine combine = inputs[0].combine;
  double result = inputs[0].real(index);
  for (size_t rank = 1; rank < inputs.size(); ++rank) {
    const double value = inputs[rank].real(index);
    if (combine == Combine::kProd) {
      result *= value;
    } else if (combine == Combine::kMax || combine == Combine::kMin) {
      const bool better = combine == Combine::kMax ? value > result : value < result;
      result = better ? value : result;
    } else {
      result += value;
    }
  }
  return combine == Combine::kAvg ? result / static_cast<double>(inputs.size()) : result;
}

// What `inputs` make together; one input: itself. Copies carry arbitrary bits: NaNs too.
template <typename Bits>
void expect(const std::vector<Input>& inputs, uint64_t first, size_t count, Bits* out) {
  const Kind kind = inputs[0].kind;
  const bool as_float = kind.is_float && inputs[0].combine != Combine::kCopy;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = as_float
                              ? float_bits(combine_reals(inputs, first + i), kind, sizeof(Bits))
                          : inputs.size() == 1 ? inputs[0].integer(first + i)
                                               : combine_integers(inputs, first + i, sizeof(Bits));
    out[i] = static_cast<Bits>(bits);
  }
}

// One value as if it were alone: an average of one rank's is that value.
template <typename Bits>
void generate(const Input& input, uint64_t first, size_t count, Bits* out) {
  const bool as_float = input.kind.is_float && input.combine != Combine::kCopy;
  for (size_t i = 0; i < count; ++i) {
    out[i] =
        static_cast<Bits>(as_float ? float_bits(input.real(first + i), input.kind, sizeof(Bits))
                                   : input.integer(first + i));
  }
}

// Calls `function` with a null pointer to unsigned integers of the type's width.
template <typename Function>
auto with_bits(DataType type, Function function) {
  switch (size_of(type)) {
    case 1:
      return function(static_cast<uint8_t*>(nullptr));
    case 2:
      return function(static_cast<uint16_t*>(nullptr));
    case 4:
      return function(static_cast<uint32_t*>(nullptr));
    default:
      return function(static_cast<uint64_t*>(nullptr));
  }
}

}  // namespace

void fill(const Pattern& pattern, int rank, uint64_t first, size_t count, void* out, Pulse* pulse) {
  const Input input(pattern, rank);
  with_bits(pattern.type, [&]<typename Bits>(Bits*) {
    for (size_t done = 0; done < count; done += kValuesPerBeat, pulse->beat()) {
      generate(input, first + done, std::min(kValuesPerBeat, count - done),
               static_cast<Bits*>(out) + done);
    }
  });
}

uint64_t count_wrong(const Pattern& pattern, int source, uint64_t first, size_t count,
                     const void* got, Pulse* pulse) {
  const bool is_copy = pattern.combine == Combine::kCopy;
  std::vector<Input> inputs;
  for (int rank = 0; rank < (is_copy ? 1 : pattern.ranks); ++rank) {
    inputs.emplace_back(pattern, is_copy ? source : rank);
  }
  return with_bits(pattern.type, [&]<typename Bits>(Bits*) {
    uint64_t wrong = 0;
    Bits expected[kValuesPerBeat];
    for (size_t done = 0; done < count; done += kValuesPerBeat, pulse->beat()) {
      const size_t part = std::min(kValuesPerBeat, count - done);
      const Bits* block = static_cast<const Bits*>(got) + done;
      expect(inputs, first + done, part, expected);
      // Bits, not values: a NaN must be that NaN, and -0 is not 0.
      if (std::memcmp(expected, block, part * sizeof(Bits)) == 0) continue;
      for (size_t i = 0; i < part; ++i) wrong += expected[i] == block[i] ? 0 : 1;
    }
    return wrong;
  });
}

void fill_ones(DataType type, size_t bytes, void* out) {
  const Kind& kind = kKinds[static_cast<size_t>(type)];
  with_bits(type, [&]<typename Bits>(Bits*) {
    const uint64_t one = kind.is_float ? float_bits(1.0, kind, sizeof(Bits)) : 1;
    std::fill_n(static_cast<Bits*>(out), bytes / sizeof(Bits), static_cast<Bits>(one));
  });
}

}  // namespace slime::perf
