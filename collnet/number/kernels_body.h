// The bodies of Kernels, compiled once per instruction set: the including file sets the target and
// defines SLIME_NUMBER_KERNELS_NAME. Only the compiler's own functions are used here: a template or
// inline function of the standard library, instantiated for a newer instruction set, could replace
// the common copy in the whole program. The loops are written for the compiler to vectorise: no
// branches, and every float is brought to double, where scaling is exact and rounding is one
// addition. As all products are exact, it does not matter whether the compiler fuses them with
// additions. 16-bit floats in 16-bit lanes need no more than float: twice as many fit a vector.
#include "collnet/number/kernels.h"

namespace slime::number {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are swapped unconditionally");

// Elements and numbers in memory, at any address and of any type. (A type that is merely declared
// unaligned loses that in templates.)
struct Memory8 {
  using Unsigned = uint8_t;
  using Signed = int8_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return value; }
};
struct Memory16 {
  using Unsigned = uint16_t;
  using Signed = int16_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return __builtin_bswap16(value); }
};
struct Memory32 {
  using Unsigned = uint32_t;
  using Signed = int32_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return __builtin_bswap32(value); }
};
struct Memory64 {
  using Unsigned = uint64_t;
  struct __attribute__((packed, may_alias)) Loose {
    Unsigned value;
  };
  static Unsigned swapped(Unsigned value) { return __builtin_bswap64(value); }
};

inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
inline double double_of(uint64_t bits) { return __builtin_bit_cast(double, bits); }
inline uint64_t bits_of(double value) { return __builtin_bit_cast(uint64_t, value); }

// In [1.5 * 2^52, 2^53) doubles are integers: an addition of this rounds to nearest even and leaves
// the integer in the low bits.
constexpr double kIntegers = 0x1.8p52;

constexpr float kSmallIntegers = 0x1.8p23F;  // the same in float

// To kBits significant bits, the last one never below that of 2^kLeast. As above, with integers
// replaced by multiples of the last bit: 2^E of the value, times 2^(1 - kBits), takes the place
// of 1.
template <int kBits, int kLeast>
inline double rounded(double value) {
  constexpr uint64_t kMagnitude = ~uint64_t{0} >> 1, kExponent = uint64_t{0x7ff} << 52;
  const double magnitude = double_of(bits_of(value) & kMagnitude);
  constexpr double kFloor = __builtin_bit_cast(double, uint64_t{1023 + kLeast} << 52);
  const double above = magnitude > kFloor ? magnitude : kFloor;
  constexpr double kLast = 1.0 / (1 << (kBits - 1));
  const double unit = double_of(bits_of(above) & kExponent) * (kIntegers * kLast);
  return (value + unit) - unit;
}
template <int kBits, int kLeast>
inline float rounded(float value) {
  constexpr uint32_t kMagnitude = ~uint32_t{0} >> 1, kExponent = uint32_t{0xff} << 23;
  const float magnitude = float_of(bits_of(value) & kMagnitude);
  constexpr float kFloor = __builtin_bit_cast(float, uint32_t{127 + kLeast} << 23);
  const float above = magnitude > kFloor ? magnitude : kFloor;
  constexpr float kLast = 1.0F / (1 << (kBits - 1));
  const float unit = float_of(bits_of(above) & kExponent) * (kSmallIntegers * kLast);
  return (value + unit) - unit;
}

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

struct Single : Memory32 {
  static constexpr Signed kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  static float widened(Unsigned bits) { return float_of(bits); }
  static Unsigned narrowed(double value) { return bits_of(static_cast<float>(value)); }
};

struct Bfloat : Memory16 {
  static constexpr Signed kMagnitude = 0x7fff, kInfinity = 0x7f80;
  static float widened(Unsigned bits) { return float_of(uint32_t{bits} << 16); }
  // What was rounded to eight bits is a float; what is too large becomes infinity in both.
  static Unsigned narrowed(double value) {
    const uint32_t bits = bits_of(static_cast<float>(rounded<8, -126>(value)));
    return static_cast<Unsigned>((bits & 0x7fffffff) >> 16 | (bits_of(value) >> 63) << 15);
  }
  // The upper half of the bits, to nearest even; the carry ends at infinity.
  static Unsigned narrowed(float value) {
    const uint32_t bits = bits_of(value);
    return static_cast<Unsigned>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct Half : Memory16 {
  static constexpr Signed kMagnitude = 0x7fff, kInfinity = 0x7c00;
  // Denormals are multiples of 2^-24; others need a larger exponent. Infinity and NaN come out as
  // numbers: nobody packs them.
  static float widened(Unsigned bits) {
    const uint32_t magnitude = bits & 0x7fffu;
    const float denormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
    const float normal = float_of((magnitude << 13) + (112u << 23));
    const float value = magnitude < 0x400 ? denormal : normal;
    return float_of(bits_of(value) | (bits & 0x8000u) << 16);
  }
  static Unsigned narrowed(double value) {
    return assembled(static_cast<float>(rounded<11, -14>(value)), bits_of(value) >> 63);
  }
  static Unsigned narrowed(float value) {
    return assembled(rounded<11, -14>(value), bits_of(value) >> 31);
  }
  static Unsigned assembled(float value, uint64_t sign) {
    const uint32_t bits = bits_of(value) & 0x7fffffff;
    const uint32_t denormal = bits_of(float_of(bits) + 0.5f) - bits_of(0.5f);
    const uint32_t normal = (bits - (112u << 23)) >> 13;
    const uint32_t finite = bits < (113u << 23) ? denormal : normal;
    const uint32_t magnitude = bits >= (143u << 23) ? 0x7c00 : finite;  // 2^16
    return static_cast<Unsigned>(magnitude | sign << 15);
  }
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

template <typename Float, typename Lane = Memory32>
uint64_t quantise(void* to, const void* from, size_t count, Scale scale, const void* weights) {
  const auto* in = static_cast<const typename Float::Loose*>(from);
  const auto* weight = static_cast<const typename Lane::Loose*>(weights);
  auto* out = static_cast<typename Lane::Loose*>(to);
  const double limit = scale.limit, factor = scale.factor;
  typename Lane::Unsigned sum = 0;
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    // This way round NaN becomes a number.
    double value = static_cast<double>(Float::widened(in[i].value)) * factor;
    value = value > -limit ? value : -limit;
    value = value < limit ? value : limit;
    const auto number = static_cast<typename Lane::Unsigned>(bits_of(value + kIntegers));
    out[i].value = Lane::swapped(number);
    sum = static_cast<typename Lane::Unsigned>(sum + 1u * number * weight[i].value);
  }
  return sum;
}

// What is lost of products in float, below 2^-126, is far below a half and rounds to 0 either way.
template <typename Float, typename Lane = Memory16>
uint64_t quantise_narrow(void* to, const void* from, size_t count, Scale scale,
                         const void* weights) {
  const auto* in = static_cast<const typename Float::Loose*>(from);
  const auto* weight = static_cast<const typename Lane::Loose*>(weights);
  auto* out = static_cast<typename Lane::Loose*>(to);
  const auto limit = static_cast<float>(scale.limit);
  const Powers factor = powers_of(scale.factor);
  typename Lane::Unsigned sum = 0;
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    float value = Float::widened(in[i].value) * factor.first * factor.second;
    value = value > -limit ? value : -limit;
    value = value < limit ? value : limit;
    const auto number = static_cast<typename Lane::Unsigned>(bits_of(value + kSmallIntegers));
    out[i].value = Lane::swapped(number);
    sum = static_cast<typename Lane::Unsigned>(sum + 1u * number * weight[i].value);
  }
  return sum;
}

template <typename Float, typename Lane = Memory32>
void dequantise(void* to, const void* from, size_t count, double factor) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  auto* out = static_cast<typename Float::Loose*>(to);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<typename Lane::Signed>(Lane::swapped(in[i].value));
    out[i].value = Float::narrowed(static_cast<double>(number) * factor);
  }
}

// 16 bits are exact in float, down to its least denormal: the unit of no block is less than 2^-140.
template <typename Float, typename Lane = Memory16>
void dequantise_narrow(void* to, const void* from, size_t count, double factor) {
  const auto* in = static_cast<const typename Lane::Loose*>(from);
  auto* out = static_cast<typename Float::Loose*>(to);
  const Powers powers = powers_of(factor);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<typename Lane::Signed>(Lane::swapped(in[i].value));
    out[i].value = Float::narrowed(static_cast<float>(number) * powers.first * powers.second);
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
    SLIME_NUMBER_KERNELS_NAME,
    {find<Half>, find<Single>, find<Bfloat>},
    {{quantise_narrow<Half>, quantise<Half>},
     {nullptr, quantise<Single>},
     {quantise_narrow<Bfloat>, quantise<Bfloat>}},
    {{dequantise_narrow<Half>, dequantise<Half>},
     {nullptr, dequantise<Single>},
     {dequantise_narrow<Bfloat>, dequantise<Bfloat>}},
    {pack<Memory8>, pack<Memory16>, pack<Memory32>, pack<Memory64>},
    {unpack<Memory8>, unpack<Memory16>, unpack<Memory32>, unpack<Memory64>},
    {weigh<Memory8>, weigh<Memory16>, weigh<Memory32>, weigh<Memory64>},
};

}  // namespace
}  // namespace slime::number
