// The bodies of Kernels, compiled once per level (base/machine/simd.h). The includer defines
// SLIME_SIMD_LEVEL and SLIME_SIMD_NAME, SLIME_SIMD_F16C where the instructions for halves may be
// used, and includes <immintrin.h> there and kernels.h.

namespace slime::perf::SLIME_SIMD_LEVEL {
namespace {

using Word = uint32_t __attribute__((may_alias));
using Long = uint64_t __attribute__((may_alias));

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Prod {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a * b);
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
};

// The loops assert that no iteration depends on another: `out` is either equal to an input or apart
// from it.
template <typename T, typename Op>
void reduce_plain(void* out, void* out2, const void* a, const void* b, size_t count, uint32_t) {
  auto* o = static_cast<T*>(out);
  auto* o2 = static_cast<T*>(out2);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  if (o2 == nullptr) {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) o[i] = Op::apply(x[i], y[i]);
    return;
  }
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const T result = Op::apply(x[i], y[i]);
    o[i] = result;
    o2[i] = result;
  }
}

// The sum wraps in U, the unsigned form of T; the quotient is NCCL's: of the wrapped sum,
// truncated. It is taken in W, where vectors can divide and where it is exact: divisors are small.
template <typename T, typename U, typename W>
void average_plain(void* out, void* out2, const void* a, const void* b, size_t count,
                   uint32_t divisor) {
  auto* o = static_cast<T*>(out);
  auto* o2 = out2 != nullptr ? static_cast<T*>(out2) : o;
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  const W n = static_cast<W>(divisor);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const T sum = static_cast<T>(static_cast<U>(static_cast<U>(x[i]) + static_cast<U>(y[i])));
    const T result = static_cast<T>(static_cast<W>(sum) / n);
    o[i] = result;
    o2[i] = result;
  }
}

// Sixteen-bit floats go through float, a block at a time: every sum and product of two of them is
// rounded once.
constexpr size_t kBlock = 64;

#if defined SLIME_SIMD_F16C && !defined __clang__
inline void widen(float* to, const Half* from) {
  for (size_t i = 0; i < kBlock; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
}
inline void narrow(Half* to, const float* from) {
  for (size_t i = 0; i < kBlock; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
}
#else
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

// The exponent is moved by a multiplication, which also normalises what was denormal.
inline void widen(float* to, const Half* from) {
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t half = from[i].bits;
    const uint32_t moved = bits_of(float_of((half & 0x7fff) << 13) * float_of(0x77800000));
    const uint32_t special = (half & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;  // infinity, NaN
    to[i] = float_of(moved | special | (half & 0x8000) << 16);
  }
}
// Round to nearest even. Adding a power of two moves the bits that remain to the bottom of the
// mantissa, and the addition rounds.
inline void narrow(Half* to, const float* from) {
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t bits = bits_of(from[i]);
    const uint32_t magnitude = bits & 0x7fffffff;
    const uint32_t denormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const uint32_t rounded = magnitude < 0x38800000 ? denormal : normal;
    const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    const uint32_t finite = magnitude >= 0x477ff000 ? special : rounded;
    to[i].bits = static_cast<uint16_t>(finite | (bits >> 16 & 0x8000));
  }
}
#endif

inline void widen(float* to, const Bfloat* from) {
  for (size_t i = 0; i < kBlock; ++i) {
    to[i] = __builtin_bit_cast(float, static_cast<uint32_t>(from[i].bits) << 16);
  }
}
inline void narrow(Bfloat* to, const float* from) {
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, from[i]);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40;
    to[i].bits = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
  }
}

template <typename T, typename Op, bool kDivide>
inline void reduce_block(T* out, const T* a, const T* b, float divisor) {
  alignas(64) float x[kBlock], y[kBlock];
  widen(x, a);
  widen(y, b);
  for (size_t i = 0; i < kBlock; ++i) {
    x[i] = Op::apply(x[i], y[i]);
    if (kDivide) x[i] /= divisor;
  }
  narrow(out, x);
}

template <typename T, typename Op, bool kDivide>
void reduce_narrow(void* out, void* out2, const void* a, const void* b, size_t count,
                   uint32_t divisor) {
  auto* o = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  const float n = static_cast<float>(divisor);
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    reduce_block<T, Op, kDivide>(o + i, x + i, y + i, n);
    if (out2 != nullptr) {
      __builtin_memcpy(static_cast<T*>(out2) + i, o + i, kBlock * sizeof(T));
    }
  }
  if (i == count) return;
  T tail_x[kBlock] = {}, tail_y[kBlock] = {};
  __builtin_memcpy(tail_x, x + i, (count - i) * sizeof(T));
  __builtin_memcpy(tail_y, y + i, (count - i) * sizeof(T));
  reduce_block<T, Op, kDivide>(tail_x, tail_x, tail_y, n);
  __builtin_memcpy(o + i, tail_x, (count - i) * sizeof(T));
  if (out2 != nullptr) {
    __builtin_memcpy(static_cast<T*>(out2) + i, tail_x, (count - i) * sizeof(T));
  }
}

void pack_ll(void* lines, const void* data, size_t bytes, uint32_t flag) {
  auto* line = static_cast<Word*>(lines);
  const auto* from = static_cast<const Word*>(data);
  const size_t words = bytes / sizeof(Word);
#pragma GCC ivdep
  for (size_t i = 0; i < words; ++i) {
    line[2 * i] = from[i];
    line[2 * i + 1] = flag;
  }
  if (bytes % kLlLineData == 0) return;
  uint32_t tail[2] = {};
  const size_t whole = bytes / kLlLineData;
  __builtin_memcpy(tail, static_cast<const char*>(data) + whole * kLlLineData, bytes % kLlLineData);
  for (size_t i = 0; i < 2; ++i) {
    line[4 * whole + 2 * i] = tail[i];
    line[4 * whole + 2 * i + 1] = flag;
  }
}

void unpack_ll(void* data, const void* lines, size_t bytes) {
  auto* to = static_cast<Word*>(data);
  const auto* line = static_cast<const Word*>(lines);
  const size_t words = bytes / sizeof(Word);
#pragma GCC ivdep
  for (size_t i = 0; i < words; ++i) to[i] = line[2 * i];
  __builtin_memcpy(to + words, line + 2 * words, bytes % sizeof(Word));
}

// All that the network has written before this word is visible once the word is.
uint64_t load_acquire(const Long* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

size_t ready_ll(const void* lines, size_t count, uint32_t flag) {
  const auto* half = static_cast<const Long*>(lines);
  size_t i = 0;
  while (i < count && load_acquire(&half[2 * i]) >> 32 == flag &&
         load_acquire(&half[2 * i + 1]) >> 32 == flag) {
    ++i;
  }
  return i;
}

void pack_ll128(void* lines, const void* data, size_t bytes, uint64_t flag) {
  auto* line = static_cast<char*>(lines);
  const auto* from = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes; done += kLl128LineData, line += kLl128LineBytes) {
    const size_t part = bytes - done < kLl128LineData ? bytes - done : kLl128LineData;
    __builtin_memcpy(line, from + done, part);
    *reinterpret_cast<Long*>(line + kLl128LineData) = flag;
  }
}

void unpack_ll128(void* data, const void* lines, size_t bytes) {
  const auto* line = static_cast<const char*>(lines);
  auto* to = static_cast<char*>(data);
  for (size_t done = 0; done < bytes; done += kLl128LineData, line += kLl128LineBytes) {
    const size_t part = bytes - done < kLl128LineData ? bytes - done : kLl128LineData;
    __builtin_memcpy(to + done, line, part);
  }
}

size_t ready_ll128(const void* lines, size_t count, uint64_t flag) {
  const auto* word = static_cast<const Long*>(lines);
  size_t i = 0;
  while (i < count && load_acquire(&word[16 * i + 15]) == flag) ++i;
  return i;
}

// Sums and products of signed integers wrap in their unsigned form U.
#define SLIME_INTEGER_ROW(T, U) \
  { reduce_plain<U, Sum>, reduce_plain<U, Prod>, reduce_plain<T, Max>, reduce_plain<T, Min> }
#define SLIME_NARROW_ROW(T)                                                                    \
  {                                                                                            \
    reduce_narrow<T, Sum, false>, reduce_narrow<T, Prod, false>, reduce_narrow<T, Max, false>, \
        reduce_narrow<T, Min, false>                                                           \
  }

constexpr Kernels kBodies = {
    SLIME_SIMD_NAME,
    {SLIME_INTEGER_ROW(int8_t, uint8_t), SLIME_INTEGER_ROW(uint8_t, uint8_t),
     SLIME_INTEGER_ROW(int32_t, uint32_t), SLIME_INTEGER_ROW(uint32_t, uint32_t),
     SLIME_INTEGER_ROW(int64_t, uint64_t), SLIME_INTEGER_ROW(uint64_t, uint64_t),
     SLIME_NARROW_ROW(Half), SLIME_INTEGER_ROW(float, float), SLIME_INTEGER_ROW(double, double),
     SLIME_NARROW_ROW(Bfloat)},
    {average_plain<int8_t, uint8_t, float>, average_plain<uint8_t, uint8_t, float>,
     average_plain<int32_t, uint32_t, double>, average_plain<uint32_t, uint32_t, double>,
     average_plain<int64_t, uint64_t, int64_t>, average_plain<uint64_t, uint64_t, uint64_t>,
     reduce_narrow<Half, Sum, true>, average_plain<float, float, float>,
     average_plain<double, double, double>, reduce_narrow<Bfloat, Sum, true>},
    pack_ll,
    unpack_ll,
    ready_ll,
    pack_ll128,
    unpack_ll128,
    ready_ll128,
};

#undef SLIME_INTEGER_ROW
#undef SLIME_NARROW_ROW

}  // namespace
}  // namespace slime::perf::SLIME_SIMD_LEVEL
