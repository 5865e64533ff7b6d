#include "tools/perf/values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

// -O2 vectorises only what is certain to pay off.
#pragma GCC optimize("O3")

namespace slime::perf {
namespace {

// Elements are worked with as bits: integers in two's complement of 64 bits, floats as doubles.
struct Kind {
  explicit Kind(DataType type)
      : width(8 * size_of(type)),
        mantissa(kMantissas[static_cast<size_t>(type)]),
        is_float(mantissa > 0),
        is_signed(is_float || static_cast<size_t>(type) % 2 == 0),
        limit(is_float ? uint64_t{2} << mantissa : UINT64_MAX >> (64 - width + is_signed)) {}

  static constexpr std::array<int, kDataTypes> kMantissas = {0, 0, 0, 0, 0, 0, 10, 23, 52, 7};
  size_t width;
  int mantissa;  // of floats
  bool is_float, is_signed;
  uint64_t limit;  // results need no more, so that every order of additions is exact
};

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
inline uint64_t float_bits(double value, const Kind& kind) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (kind.mantissa == 52) return bits;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const int shift = 52 - kind.mantissa;
  const uint64_t moved =
      magnitude -
      ((1024 - (uint64_t{1} << (kind.width - 2 - static_cast<size_t>(kind.mantissa)))) << 52);
  const uint64_t half = (uint64_t{1} << (shift - 1)) - 1 + (moved >> shift & 1);
  const uint64_t rounded = magnitude == 0 ? 0 : (moved + half) >> shift;
  return bits >> 63 << (kind.width - 1) | rounded;
}

// One rank's part, with what does not depend on the index worked out before.
struct Input {
  Input(const Pattern& pattern, int rank)
      : kind(pattern.type),
        op(pattern.op),
        rank(static_cast<uint32_t>(rank)),
        ranks(static_cast<uint32_t>(pattern.ranks)),
        salt(salt_of(pattern, rank)),
        common_salt(salt_of(pattern, -1)),
        limit(static_cast<uint64_t>(rank) >= kind.limit
                  ? 0
                  : std::bit_floor(std::max<uint64_t>(1, kind.limit / ranks))) {}

  uint64_t integer(uint64_t index) const {
    const uint64_t random = hash(index, salt);
    if (op != RedOp::kAvg) return random;
    if (limit == 0) return 0;
    const uint64_t magnitude = (random & (limit - 1)) | (random >> 63 & (limit == 1));
    return kind.is_signed && (random >> 62 & 1) != 0 ? -magnitude : magnitude;
  }
  double real(uint64_t index) const {
    const uint64_t random = hash(index, salt);
    if (op == RedOp::kSum || op == RedOp::kAvg) {
      if (limit == 0) return 0;
      return static_cast<double>(static_cast<int64_t>(random & (2 * limit - 1)) -
                                 static_cast<int64_t>(limit));
    }
    if (op != RedOp::kProd) {
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
  const RedOp op;
  const uint32_t rank, ranks, salt, common_salt;
  const uint64_t limit;
};

// `Number`: what the elements are, or in what floats are computed. Sums and products of integers
// wrap in 64 bits, of which the lowest are right.
template <typename Number, typename Value>
auto combine(const std::vector<Input>& inputs, Value value) {
  const RedOp op = inputs[0].op;
  auto result = value(inputs[0]);
  for (size_t rank = 1; rank < inputs.size(); ++rank) {
    const auto next = value(inputs[rank]);
    const auto one = static_cast<Number>(next), best = static_cast<Number>(result);
    if (op == RedOp::kSum || op == RedOp::kAvg) result += next;
    if (op == RedOp::kProd) result *= next;
    if ((op == RedOp::kMax && one > best) || (op == RedOp::kMin && one < best)) result = next;
  }
  if (op != RedOp::kAvg) return result;
  using Wide = std::conditional_t<std::is_same_v<Number, double>, double,
                                  std::conditional_t<std::is_signed_v<Number>, int64_t, uint64_t>>;
  return static_cast<decltype(result)>(static_cast<Wide>(result) /
                                       static_cast<Wide>(inputs.size()));
}

// What `inputs` make together; one input: itself. Copies carry arbitrary bits: NaNs too.
template <typename Bits>
void expect(const std::vector<Input>& inputs, uint64_t first, size_t count, Bits* out) {
  const Kind kind = inputs[0].kind;
  const bool as_float = kind.is_float && inputs[0].op != RedOp::kNone;
  for (size_t i = 0; i < count; ++i) {
    const auto integer = [&](const Input& input) { return input.integer(first + i); };
    const auto real = [&](const Input& input) { return input.real(first + i); };
    const uint64_t bits = as_float         ? float_bits(combine<double>(inputs, real), kind)
                          : kind.is_signed ? combine<std::make_signed_t<Bits>>(inputs, integer)
                                           : combine<Bits>(inputs, integer);
    out[i] = static_cast<Bits>(bits);
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

void fill(const Pattern& pattern, int rank, uint64_t first, size_t count, void* out,
          Heartbeat* heartbeat) {
  const std::vector<Input> inputs(1, Input(pattern, rank));
  with_bits(pattern.type, [&]<typename Bits>(Bits*) {
    for (size_t done = 0; done < count; done += kValuesPerBeat, heartbeat->beat()) {
      expect(inputs, first + done, std::min(kValuesPerBeat, count - done),
             static_cast<Bits*>(out) + done);
    }
  });
}

uint64_t count_wrong(const Pattern& pattern, int source, uint64_t first, size_t count,
                     const void* got, Heartbeat* heartbeat) {
  const bool is_copy = pattern.op == RedOp::kNone;
  const int sources = is_copy ? 1 : pattern.ranks;
  std::vector<Input> inputs;
  inputs.reserve(static_cast<size_t>(sources));
  for (int rank = 0; rank < sources; ++rank) {
    inputs.emplace_back(pattern, is_copy ? source : rank);
  }
  return with_bits(pattern.type, [&]<typename Bits>(Bits*) {
    uint64_t wrong = 0;
    Bits expected[kValuesPerBeat];
    for (size_t done = 0; done < count; done += kValuesPerBeat, heartbeat->beat()) {
      const size_t part = std::min(kValuesPerBeat, count - done);
      const Bits* block = static_cast<const Bits*>(got) + done;
      expect(inputs, first + done, part, expected);
      // Bits, not values: a NaN must be that NaN, and -0 is not 0.
      for (size_t i = 0; i < part; ++i) wrong += expected[i] == block[i] ? 0 : 1;
    }
    return wrong;
  });
}

uint64_t count_overwritten(DataType type, std::span<const char> memory) {
  const auto is_poison = [](char byte) { return byte == static_cast<char>(kPoison); };
  uint64_t overwritten = 0;
  for (size_t offset = 0; offset < memory.size(); offset += size_of(type)) {
    overwritten += std::ranges::all_of(memory.subspan(offset, size_of(type)), is_poison) ? 0 : 1;
  }
  return overwritten;
}

void fill_ones(DataType type, size_t bytes, void* out) {
  const Kind kind(type);
  with_bits(type, [&]<typename Bits>(Bits*) {
    const uint64_t one = kind.is_float ? float_bits(1.0, kind) : 1;
    std::fill_n(static_cast<Bits*>(out), bytes / sizeof(Bits), static_cast<Bits>(one));
  });
}

void fill_garbage(DataType type, int rank, bool wild, std::span<char> memory) {
  const Kind kind(type);
  uint64_t state = static_cast<uint64_t>(rank) + 1;
  with_bits(type, [&]<typename Bits>(Bits*) {
    const auto mantissa = static_cast<Bits>((uint64_t{1} << kind.mantissa) - 1);
    const auto exponent = static_cast<Bits>(static_cast<Bits>(~mantissa) << 1) >> 1;
    for (size_t offset = 0; offset + sizeof(Bits) <= memory.size(); offset += sizeof(Bits)) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
      auto bits = static_cast<Bits>(state ^ state >> 29);
      if (kind.is_float && !wild) {  // the greatest exponent or none, a mantissa or none
        bits &= static_cast<Bits>(~exponent);
        if ((state >> 63) != 0) bits |= exponent;
        if ((state >> 62 & 1) != 0) bits &= static_cast<Bits>(~mantissa);
      }
      std::memcpy(memory.data() + offset, &bits, sizeof bits);
    }
  });
}

}  // namespace slime::perf
