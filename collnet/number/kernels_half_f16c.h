// IEEE half precision to single and back by the instructions that do just that.
#pragma once

#include <immintrin.h>

#include "collnet/number/kernels_memory.h"

namespace slime::number {
namespace {

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

}  // namespace
}  // namespace slime::number
