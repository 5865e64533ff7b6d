// IEEE half precision to single and back, element by element, for the compiler to vectorise.
#pragma once

#include "collnet/number/kernels_memory.h"

namespace slime::number {
namespace {

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

}  // namespace
}  // namespace slime::number
