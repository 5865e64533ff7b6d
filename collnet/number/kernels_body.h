// The bodies of Kernels, compiled once per level (base/machine/simd.h). The includer defines
// SLIME_SIMD_LEVEL and SLIME_SIMD_NAME, SLIME_SIMD_F16C where the instructions for halves may be
// used (undefined again at the end), and includes <immintrin.h> there, <type_traits> and kernels.h.
// The loops are written for the compiler to vectorise: no branches, and every float32 is brought to
// double, where scaling is exact and rounding is one addition. As all products are exact, it does
// not matter whether the compiler fuses them with additions. 16-bit floats need no more than float:
// twice as many fit a vector.

namespace slime::number::SLIME_SIMD_LEVEL {
namespace {

// Elements and numbers as the kernels read and write them: at any address, in either byte order.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are swapped unconditionally");

// Elements and numbers in memory, at any address and of any type. (A type that is merely declared
// unaligned loses that in templates.)
template <typename T>
struct Memory {
  using Unsigned = T;
  using Signed = std::make_signed_t<T>;
  struct __attribute__((packed, may_alias)) Loose {
    T value;
  };
  static_assert(alignof(Loose) == 1 && sizeof(Loose) == sizeof(T));

  static T swapped(T value) {
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
    return value;
  }
};
using Memory8 = Memory<uint8_t>;
using Memory16 = Memory<uint16_t>;
using Memory32 = Memory<uint32_t>;
using Memory64 = Memory<uint64_t>;

inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

#if defined SLIME_SIMD_F16C && !defined __clang__  // clang ignores `#pragma GCC target`

// IEEE half precision to single and back by the instructions that do just that.
constexpr size_t kAtOnce = 8;

inline void widen_eight(float* to, const Memory16::Loose* from) {
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline void narrow_eight(Memory16::Loose* to, const float* from) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}

inline void widen_halves(float* to, const Memory16::Loose* from, size_t count) {
  size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) widen_eight(to + i, from + i);
  if (i == count) return;
  Memory16::Loose last[kAtOnce] = {};
  float widened[kAtOnce];
  __builtin_memcpy(last, from + i, (count - i) * sizeof *last);
  widen_eight(widened, last);
  __builtin_memcpy(to + i, widened, (count - i) * sizeof *widened);
}
inline void narrow_to_halves(Memory16::Loose* to, const float* from, size_t count) {
  size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) narrow_eight(to + i, from + i);
  if (i == count) return;
  Memory16::Loose narrowed[kAtOnce];
  float last[kAtOnce] = {};
  __builtin_memcpy(last, from + i, (count - i) * sizeof *last);
  narrow_eight(narrowed, last);
  __builtin_memcpy(to + i, narrowed, (count - i) * sizeof *narrowed);
}

#else

// The same element by element, for the compiler to vectorise.
// Denormals are multiples of 2^-24; others need a larger exponent, infinity and NaN the largest.
inline float single_of_half(uint32_t half) {
  const uint32_t magnitude = half & 0x7fff;
  const float denormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F;
  const uint32_t shift = static_cast<int32_t>(magnitude) < 0x7c00 ? 112U << 23 : 224U << 23;
  const float normal = float_of((magnitude << 13) + shift);
  const float value = static_cast<int32_t>(magnitude) < 0x400 ? denormal : normal;
  return float_of(bits_of(value) | (half & 0x8000) << 16);
}

// To nearest even; NaN does not come. The last place of a sum with 0.5 is that of denormals. Of
// others, a carry out of the significand is one into the exponent, at last to infinity.
inline uint16_t half_of_single(float value) {
  const auto bits = static_cast<int32_t>(bits_of(value));
  const int32_t magnitude = bits & 0x7fffffff;
  const auto denormal = static_cast<int32_t>(bits_of(float_of(magnitude) + 0.5F));
  const int32_t rounded = (magnitude - (112 << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const int32_t normal = rounded < 0x7c00 ? rounded : 0x7c00;
  const int32_t half = magnitude < 113 << 23 ? denormal : normal;
  return static_cast<uint16_t>((half & 0x7fff) | (bits >> 16 & 0x8000));
}

inline void widen_halves(float* to, const Memory16::Loose* from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = single_of_half(from[i].value);
}
inline void narrow_to_halves(Memory16::Loose* to, const float* from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i].value = half_of_single(from[i]);
}

#endif

inline uint64_t bits_of(double value) { return __builtin_bit_cast(uint64_t, value); }

// In [1.5 * 2^52, 2^53) doubles are integers: an addition of this rounds to nearest even and leaves
// the integer in the low bits.
constexpr double kIntegers = 0x1.8p52;

constexpr float kSmallIntegers = 0x1.8p23F;  // the same in float

// 2^k as a product of two floats: k may be beyond the range of one.
struct Powers {
  float first, second;
};
inline Powers powers_of(double power) {
  const int k = static_cast<int>(bits_of(power) >> 52) - 1023;
  const auto single = [](int exponent) {
    return float_of(static_cast<uint32_t>(127 + exponent) << 23);
  };
  return {single(k / 2), single(k - k / 2)};
}

// The greatest float that is not above it.
inline float float_within(int32_t limit) {
  const auto nearest = static_cast<float>(limit);
  return static_cast<double>(nearest) > limit ? float_of(bits_of(nearest) - 1) : nearest;
}

struct Single : Memory32 {
  static constexpr Signed kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  static float widened(Unsigned bits) { return float_of(bits); }
  static Unsigned narrowed(float value) { return bits_of(value); }
};

struct Bfloat : Memory16 {
  static constexpr Signed kMagnitude = 0x7fff, kInfinity = 0x7f80;
  static float widened(Unsigned bits) { return float_of(uint32_t{bits} << 16); }
  // The upper half of the bits, to nearest even; the carry ends at infinity.
  static Unsigned narrowed(float value) {
    const uint32_t bits = bits_of(value);
    return static_cast<Unsigned>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct Half : Memory16 {
  static constexpr Signed kMagnitude = 0x7fff, kInfinity = 0x7c00;
};

template <typename Float>
Found find(const void* from, size_t count) {
  using Signed = typename Float::Signed;
  const auto* in = static_cast<const typename Float::Loose*>(from);
  Signed greatest = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<Signed>(in[i].value & Float::kMagnitude);
    greatest = magnitude > greatest ? magnitude : greatest;
  }
  if (greatest < Float::kInfinity) return {static_cast<uint32_t>(greatest), false, false, false};
  Signed finite = 0, nan = 0, plus = 0, minus = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<Signed>(in[i].value & Float::kMagnitude);
    const bool negative = in[i].value > static_cast<typename Float::Unsigned>(Float::kMagnitude);
    const Signed kept = magnitude < Float::kInfinity ? magnitude : Signed{0};
    finite = kept > finite ? kept : finite;
    nan |= magnitude > Float::kInfinity;
    plus |= magnitude == Float::kInfinity && !negative;
    minus |= magnitude == Float::kInfinity && negative;
  }
  return {static_cast<uint32_t>(finite), nan != 0, plus != 0, minus != 0};
}

uint64_t quantise_single(void* to, const void* from, size_t count, Scale scale,
                         const void* weights) {
  const auto* in = static_cast<const Single::Loose*>(from);
  const auto* weight = static_cast<const Memory32::Loose*>(weights);
  auto* out = static_cast<Memory32::Loose*>(to);
  const double limit = scale.limit, factor = scale.factor;
  uint32_t sum = 0;
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    // This way round NaN becomes a number.
    double value = static_cast<double>(Single::widened(in[i].value)) * factor;
    value = value > -limit ? value : -limit;
    value = value < limit ? value : limit;
    const auto number = static_cast<uint32_t>(bits_of(value + kIntegers));
    out[i].value = Memory32::swapped(number);
    sum += number * weight[i].value;
  }
  return sum;
}

void dequantise_single(void* to, const void* from, size_t count, double factor) {
  const auto* in = static_cast<const Memory32::Loose*>(from);
  auto* out = static_cast<Single::Loose*>(to);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<int32_t>(Memory32::swapped(in[i].value));
    out[i].value = bits_of(static_cast<float>(static_cast<double>(number) * factor));
  }
}

// 16-bit floats: at most 11 bits of each are significant, so that from 2^22 on all are integers.
inline uint16_t number_of(float value, Memory16) {
  return static_cast<uint16_t>(bits_of(value + kSmallIntegers));
}
inline uint32_t number_of(float value, Memory32) {
  const float whole = (value + kSmallIntegers) - kSmallIntegers;
  const float magnitude = float_of(bits_of(value) & 0x7fffffff);
  return static_cast<uint32_t>(static_cast<int32_t>(magnitude < 0x1p22F ? whole : value));
}

// `Float` is the type of the 16-bit floats. Products below 2^-126 lose bits in float, but they are
// far below 1/2, and round to 0 with or without these bits.
template <typename Float, typename Lane>
uint64_t quantise_short(void* to, const void* from, size_t count, Scale scale,
                        const void* weights) {
  const auto* in = static_cast<const typename Float::Loose*>(from);
  const auto* weight = static_cast<const typename Lane::Loose*>(weights);
  auto* out = static_cast<typename Lane::Loose*>(to);
  const float limit = float_within(scale.limit);
  const Powers factor = powers_of(scale.factor);
  typename Lane::Unsigned sum = 0;
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    float value = Float::widened(in[i].value) * factor.first * factor.second;
    value = value > -limit ? value : -limit;
    value = value < limit ? value : limit;
    const typename Lane::Unsigned number = number_of(value, Lane{});
    out[i].value = Lane::swapped(number);
    sum = static_cast<typename Lane::Unsigned>(sum + 1u * number * weight[i].value);
  }
  return sum;
}

// A sum as a float that rounds to the same 16-bit float. A sum of 25 bits or more does not fit into
// a float. Its last eight bits matter only by whether one of them is set, and then the lowest bit
// that is kept is set instead (rounding to odd).
inline float float_to_round(int16_t number) { return number; }
inline float float_to_round(int32_t number) {
  const int32_t odd = (number | ((number & 0xff) + 0xff)) & ~0xff;
  const auto bits = static_cast<uint32_t>(number);
  const auto magnitude = static_cast<int32_t>(number < 0 ? 0 - bits : bits);  // -2^31 stays
  return static_cast<float>(magnitude < 1 << 24 ? number : odd);
}

// Products of sums with the unit are exact in float: what is below 2^-133 comes from no 16-bit
// float, and the unit of 16-bit numbers is never less than 2^-140.
template <typename Float, typename Lane>
void dequantise_short(void* to, const void* from, size_t count, double factor) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  auto* out = static_cast<typename Float::Loose*>(to);
  const Powers powers = powers_of(factor);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<typename Lane::Signed>(Lane::swapped(in[i].value));
    out[i].value = Float::narrowed(float_to_round(number) * powers.first * powers.second);
  }
}

// Halves become floats and come from them a stage at a time, which the first-level cache holds.
constexpr size_t kStage = 512;

template <typename Lane>
uint64_t quantise_half(void* to, const void* from, size_t count, Scale scale, const void* weights) {
  const auto* in = static_cast<const Half::Loose*>(from);
  const auto* weight = static_cast<const typename Lane::Loose*>(weights);
  auto* out = static_cast<typename Lane::Loose*>(to);
  float stage[kStage];
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i += kStage) {
    const size_t here = count - i < kStage ? count - i : kStage;
    widen_halves(stage, in + i, here);
    sum += quantise_short<Single, Lane>(out + i, stage, here, scale, weight + i);
  }
  return static_cast<typename Lane::Unsigned>(sum);
}

template <typename Lane>
void dequantise_half(void* to, const void* from, size_t count, double factor) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  auto* out = static_cast<Half::Loose*>(to);
  float stage[kStage];
  for (size_t i = 0; i < count; i += kStage) {
    const size_t here = count - i < kStage ? count - i : kStage;
    dequantise_short<Single, Lane>(stage, in + i, here, factor);
    narrow_to_halves(out + i, stage, here);
  }
}

template <typename Lane>
uint64_t pack(void* to, const void* from, size_t count, const void* weights) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  const auto* weight = static_cast<const typename Lane::Loose*>(weights);
  auto* out = static_cast<typename Lane::Loose*>(to);
  typename Lane::Unsigned sum = 0;
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    out[i].value = Lane::swapped(in[i].value);
    sum = static_cast<typename Lane::Unsigned>(sum + 1u * in[i].value * weight[i].value);
  }
  return sum;
}

template <typename Lane>
void unpack(void* to, const void* from, size_t count) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  auto* out = static_cast<typename Lane::Loose*>(to);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) out[i].value = Lane::swapped(in[i].value);
}

template <typename Lane>
uint64_t weigh(const void* from, size_t count, const void* weights) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  const auto* weight = static_cast<const typename Lane::Loose*>(weights);
  typename Lane::Unsigned sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum = static_cast<typename Lane::Unsigned>(sum +
                                               1u * Lane::swapped(in[i].value) * weight[i].value);
  }
  return sum;
}

constexpr Kernels kBodies = {
    SLIME_SIMD_NAME,
    {find<Half>, find<Single>, find<Bfloat>},
    {{quantise_half<Memory16>, quantise_half<Memory32>},
     {nullptr, quantise_single},
     {quantise_short<Bfloat, Memory16>, quantise_short<Bfloat, Memory32>}},
    {{dequantise_half<Memory16>, dequantise_half<Memory32>},
     {nullptr, dequantise_single},
     {dequantise_short<Bfloat, Memory16>, dequantise_short<Bfloat, Memory32>}},
    {pack<Memory8>, pack<Memory16>, pack<Memory32>, pack<Memory64>},
    {unpack<Memory8>, unpack<Memory16>, unpack<Memory32>, unpack<Memory64>},
    {weigh<Memory8>, weigh<Memory16>, weigh<Memory32>, weigh<Memory64>},
};

}  // namespace
}  // namespace slime::number::SLIME_SIMD_LEVEL

#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#undef SLIME_SIMD_F16C
