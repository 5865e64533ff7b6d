#include "tools/perf/values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#pragma GCC optimize("O3")

namespace slime::perf {
namespace {

constexpr size_t kBlock = 1024;  // elements between two heartbeats

// Results below need this many bits at most, so that every order of additions is exact.
template <typename T>
struct Traits;
struct HalfBits {
  uint16_t bits;
};
struct BfloatBits {
  uint16_t bits;
};
#define SLIME_TRAITS(T, floating, mantissa, limit) \
  template <>                                      \
  struct Traits<T> {                               \
    static constexpr bool kFloating = floating;    \
    static constexpr int kMantissa = mantissa;     \
    static constexpr uint64_t kLimit = limit;      \
  }
SLIME_TRAITS(int8_t, false, 0, INT8_MAX);
SLIME_TRAITS(uint8_t, false, 0, UINT8_MAX);
SLIME_TRAITS(int32_t, false, 0, INT32_MAX);
SLIME_TRAITS(uint32_t, false, 0, UINT32_MAX);
SLIME_TRAITS(int64_t, false, 0, INT64_MAX);
SLIME_TRAITS(uint64_t, false, 0, UINT64_MAX);
SLIME_TRAITS(HalfBits, true, 10, uint64_t{1} << 11);
SLIME_TRAITS(BfloatBits, true, 7, uint64_t{1} << 8);
SLIME_TRAITS(float, true, 23, uint64_t{1} << 24);
SLIME_TRAITS(double, true, 52, uint64_t{1} << 53);
#undef SLIME_TRAITS

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

// What a rank's addend may be at most.
template <typename T>
uint64_t addend_limit(int rank, int ranks) {
  if (static_cast<uint64_t>(rank) >= Traits<T>::kLimit) return 0;
  return std::bit_floor(std::max<uint64_t>(1, Traits<T>::kLimit / static_cast<uint64_t>(ranks)));
}

// One rank's part, with what does not depend on the index worked out before.
template <typename T>
struct Input {
  Input(const Pattern& pattern, int rank)
      : combine(pattern.combine),
        rank(static_cast<uint32_t>(rank)),
        ranks(static_cast<uint32_t>(pattern.ranks)),
        salt(salt_of(pattern, rank)),
        common_salt(salt_of(pattern, -1)),
        limit(addend_limit<T>(rank, pattern.ranks)) {}

  // Integers: two's complement in 64 bits.
  uint64_t integer(uint64_t index) const {
    const uint64_t random = hash(index, salt);
    if (combine != Combine::kAvg) return random;
    if (limit == 0) return 0;
    const uint64_t magnitude = (random & (limit - 1)) | (random >> 63 & (limit == 1));
    return std::is_signed_v<T> && (random >> 62 & 1) != 0 ? -magnitude : magnitude;
  }

  double real(uint64_t index) const {
    const uint64_t random = hash(index, salt);
    switch (combine) {
      case Combine::kSum:
      case Combine::kAvg:
        if (limit == 0) return 0;
        return static_cast<double>(static_cast<int64_t>(random & (2 * limit - 1)) -
                                   static_cast<int64_t>(limit));
      case Combine::kProd: {
        // One rank has a whole mantissa and the others powers of two: the product is exact. Only
        // the first eight ranks move the exponent, so that it stays in the range of a half.
        const bool chosen = mix(static_cast<uint32_t>(index) ^ common_salt) % ranks == rank;
        const int exponent = rank < 8 ? static_cast<int>(random >> 60) % 3 - 1 : 0;
        return assemble(random >> 63, chosen ? 0 : exponent, chosen ? random : 0);
      }
      default:
        return assemble(random >> 63, static_cast<int>(random >> 58 & 15) - 7, random);
    }
  }

  static double assemble(uint64_t sign, int exponent, uint64_t random) {
    const uint64_t mantissa = random & ((uint64_t{1} << Traits<T>::kMantissa) - 1);
    return std::bit_cast<double>(sign << 63 | static_cast<uint64_t>(1023 + exponent) << 52 |
                                 mantissa << (52 - Traits<T>::kMantissa));
  }

  const Combine combine;
  const uint32_t rank, ranks, salt, common_salt;
  const uint64_t limit;
};

// Rounds to nearest even; zeros and normal numbers only, as no others occur.
template <int kMantissa, int kBias>
inline uint16_t narrow(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  constexpr int kShift = 52 - kMantissa;
  const uint64_t moved = magnitude - (uint64_t{1023 - kBias} << 52);
  const uint64_t half = (uint64_t{1} << (kShift - 1)) - 1 + (moved >> kShift & 1);
  const uint64_t rounded = magnitude == 0 ? 0 : (moved + half) >> kShift;
  return static_cast<uint16_t>(bits >> 63 << 15 | rounded);
}

inline void store(double value, double* out) { *out = value; }
inline void store(double value, float* out) { *out = static_cast<float>(value); }
inline void store(double value, HalfBits* out) { out->bits = narrow<10, 15>(value); }
inline void store(double value, BfloatBits* out) { out->bits = narrow<7, 127>(value); }

// Copies carry arbitrary bits, not numbers: NaNs too.
template <typename T>
inline void store_bits(uint64_t bits, T* out) {
  std::memcpy(out, &bits, sizeof(T));
}

template <typename T>
void generate(const Input<T>& input, uint64_t first, size_t count, T* out) {
  if (!Traits<T>::kFloating || input.combine == Combine::kCopy) {
    for (size_t i = 0; i < count; ++i) store_bits(input.integer(first + i), out + i);
    return;
  }
  if constexpr (Traits<T>::kFloating) {
    for (size_t i = 0; i < count; ++i) store(input.real(first + i), out + i);
  }
}

template <typename T>
T combine_integers(const std::vector<Input<T>>& inputs, uint64_t index) {
  const Combine combine = inputs[0].combine;
  uint64_t wrapped = combine == Combine::kProd ? 1 : 0;
  T extreme = static_cast<T>(inputs[0].integer(index));
  for (const Input<T>& input : inputs) {
    const uint64_t value = input.integer(index);
    wrapped = combine == Combine::kProd ? wrapped * value : wrapped + value;
    const T one = static_cast<T>(value);
    if (combine == Combine::kMax ? one > extreme : one < extreme) extreme = one;
  }
  if (combine == Combine::kMax || combine == Combine::kMin) return extreme;
  if (combine != Combine::kAvg) return static_cast<T>(wrapped);
  if (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<int64_t>(wrapped) / static_cast<int64_t>(inputs.size()));
  }
  return static_cast<T>(wrapped / inputs.size());
}

template <typename T>
double combine_reals(const std::vector<Input<T>>& inputs, uint64_t index) {
  double result = inputs[0].real(index);
  for (size_t rank = 1; rank < inputs.size(); ++rank) {
    const double value = inputs[rank].real(index);
    switch (inputs[0].combine) {
      case Combine::kProd:
        result *= value;
        break;
      case Combine::kMax:
        result = value > result ? value : result;
        break;
      case Combine::kMin:
        result = value < result ? value : result;
        break;
      default:
        result += value;
    }
  }
  return inputs[0].combine == Combine::kAvg ? result / static_cast<double>(inputs.size()) : result;
}

template <typename T>
void expect(const std::vector<Input<T>>& inputs, uint64_t first, size_t count, T* out) {
  if (inputs.size() == 1) return generate(inputs[0], first, count, out);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (Traits<T>::kFloating) {
      store(combine_reals(inputs, first + i), out + i);
    } else {
      out[i] = combine_integers(inputs, first + i);
    }
  }
}

template <typename T>
void fill_as(const Pattern& pattern, int rank, uint64_t first, size_t count, void* out,
             Pulse* pulse) {
  const Input<T> input(pattern, rank);
  for (size_t done = 0; done < count; done += kBlock, pulse->beat()) {
    generate(input, first + done, std::min(kBlock, count - done), static_cast<T*>(out) + done);
  }
}

// Bits, not values: a NaN must be that NaN, and -0 is not 0.
template <typename T>
bool same_bits(const T* a, const T* b, size_t count) {
  return std::memcmp(reinterpret_cast<const char*>(a), reinterpret_cast<const char*>(b),
                     count * sizeof(T)) == 0;
}

template <typename T>
uint64_t count_wrong_as(const Pattern& pattern, int source, uint64_t first, size_t count,
                        const void* got, Pulse* pulse) {
  std::vector<Input<T>> inputs;
  if (pattern.combine == Combine::kCopy) {
    inputs.emplace_back(pattern, source);
  } else {
    for (int rank = 0; rank < pattern.ranks; ++rank) inputs.emplace_back(pattern, rank);
  }
  uint64_t wrong = 0;
  T expected[kBlock];
  for (size_t done = 0; done < count; done += kBlock, pulse->beat()) {
    const size_t part = std::min(kBlock, count - done);
    const T* block = static_cast<const T*>(got) + done;
    expect(inputs, first + done, part, expected);
    if (same_bits(expected, block, part)) continue;
    for (size_t i = 0; i < part; ++i) wrong += same_bits(expected + i, block + i, 1) ? 0 : 1;
  }
  return wrong;
}

// Calls `function` with a null pointer to the C++ type that stands for `type`.
template <typename Function>
auto with_type(DataType type, Function function) {
  switch (type) {
    case DataType::kInt8:
      return function(static_cast<int8_t*>(nullptr));
    case DataType::kUint8:
      return function(static_cast<uint8_t*>(nullptr));
    case DataType::kInt32:
      return function(static_cast<int32_t*>(nullptr));
    case DataType::kUint32:
      return function(static_cast<uint32_t*>(nullptr));
    case DataType::kInt64:
      return function(static_cast<int64_t*>(nullptr));
    case DataType::kUint64:
      return function(static_cast<uint64_t*>(nullptr));
    case DataType::kHalf:
      return function(static_cast<HalfBits*>(nullptr));
    case DataType::kFloat:
      return function(static_cast<float*>(nullptr));
    case DataType::kDouble:
      return function(static_cast<double*>(nullptr));
    case DataType::kBfloat16:
      break;
  }
  return function(static_cast<BfloatBits*>(nullptr));
}

}  // namespace

void fill(const Pattern& pattern, int rank, uint64_t first, size_t count, void* out, Pulse* pulse) {
  with_type(pattern.type,
            [&]<typename T>(T*) { fill_as<T>(pattern, rank, first, count, out, pulse); });
}

uint64_t count_wrong(const Pattern& pattern, int source, uint64_t first, size_t count,
                     const void* got, Pulse* pulse) {
  return with_type(pattern.type, [&]<typename T>(T*) {
    return count_wrong_as<T>(pattern, source, first, count, got, pulse);
  });
}

void fill_ones(DataType type, size_t bytes, void* out) {
  with_type(type, [&]<typename T>(T*) {
    T one;
    if constexpr (Traits<T>::kFloating) {
      store(1.0, &one);
    } else {
      one = 1;
    }
    std::fill_n(static_cast<T*>(out), bytes / sizeof(T), one);
  });
}

}  // namespace slime::perf
