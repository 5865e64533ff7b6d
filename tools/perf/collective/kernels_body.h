// The reductions, compiled once per level (base/machine/simd.h). The includer defines
// SLIME_SIMD_LEVEL and SLIME_SIMD_NAME, SLIME_SIMD_F16C where the instructions for halves may be
// used, and includes <immintrin.h> there and kernels.h.

namespace slime::perf::SLIME_SIMD_LEVEL {
namespace {

template <typename T, typename Function>
void for_each(const Operands& all, Function function) {
  auto* const out = static_cast<T*>(all.out);
  const auto* const a = static_cast<const T*>(all.a);
  const auto* const b = static_cast<const T*>(all.b);
  const size_t count = all.count;  // which a store to `out` could change
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(function(a[i], b[i]));
}

// Sums and products of signed integers wrap in U, their unsigned form. The quotient of an average
// is NCCL's: of the wrapped sum, truncated. It is taken in W, where vectors can divide and where it
// is exact: divisors are small.
template <typename T, typename U, typename W>
void reduce_as(const Operands& all) {
  const W divisor = static_cast<W>(all.divisor);
  switch (all.op) {
    case RedOp::kProd:
      return for_each<U>(all, [](U a, U b) { return a * b; });
    case RedOp::kMax:
      return for_each<T>(all, [](T a, T b) { return a > b ? a : b; });
    case RedOp::kMin:
      return for_each<T>(all, [](T a, T b) { return a < b ? a : b; });
    case RedOp::kAvg:
      return for_each<U>(all, [divisor](U a, U b) {
        const U sum = static_cast<U>(a + b);
        return static_cast<T>(static_cast<W>(static_cast<T>(sum)) / divisor);
      });
    default:
      return for_each<U>(all, [](U a, U b) { return a + b; });
  }
}

inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

// Sixteen-bit floats go through float, a block at a time: every sum and product of two of them is
// rounded once. Blocks of 64 were measured to be twice as fast as blocks of 256 (halves, AVX2).
constexpr size_t kBlock = 64;

struct Half {
#if defined SLIME_SIMD_F16C && !defined __clang__
  static void widen(float* to, const uint16_t* from) {
    for (size_t i = 0; i < kBlock; i += 8) {
      const auto* const halves = reinterpret_cast<const __m128i*>(from + i);
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(halves)));
    }
  }
  static void narrow(uint16_t* to, const float* from) {
    for (size_t i = 0; i < kBlock; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
  }
#else
  // The exponent is moved by a multiplication, which also normalises what was denormal.
  static void widen(float* to, const uint16_t* from) {
    for (size_t i = 0; i < kBlock; ++i) {
      const uint32_t half = from[i];
      const uint32_t moved = bits_of(float_of((half & 0x7fff) << 13) * float_of(0x77800000));
      const uint32_t special = (half & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;  // infinity, NaN
      to[i] = float_of(moved | special | (half & 0x8000) << 16);
    }
  }
  // To nearest even. Adding a power of two moves the bits that remain to the bottom of the
  // mantissa, and the addition rounds.
  static void narrow(uint16_t* to, const float* from) {
    for (size_t i = 0; i < kBlock; ++i) {
      const uint32_t bits = bits_of(from[i]);
      const uint32_t magnitude = bits & 0x7fffffff;
      const uint32_t denormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
      const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
      const uint32_t rounded = magnitude < 0x38800000 ? denormal : normal;
      const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
      const uint32_t finite = magnitude >= 0x477ff000 ? special : rounded;
      to[i] = static_cast<uint16_t>(finite | (bits >> 16 & 0x8000));
    }
  }
#endif
};

struct Bfloat {
  static void widen(float* to, const uint16_t* from) {
    for (size_t i = 0; i < kBlock; ++i) to[i] = float_of(uint32_t{from[i]} << 16);
  }
  static void narrow(uint16_t* to, const float* from) {
    for (size_t i = 0; i < kBlock; ++i) {
      const uint32_t bits = bits_of(from[i]);
      const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
      const uint32_t quiet = bits >> 16 | 0x40;
      to[i] = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
    }
  }
};

template <typename Short>
void reduce_short(const Operands& all) {
  alignas(64) float a[kBlock], b[kBlock];
  const auto reduce_block = [&](uint16_t* out, const uint16_t* x, const uint16_t* y) {
    Short::widen(a, x);
    Short::widen(b, y);
    reduce_as<float, float, float>({all.op, a, a, b, kBlock, all.divisor});
    Short::narrow(out, a);
  };
  auto* const out = static_cast<uint16_t*>(all.out);
  const auto* const x = static_cast<const uint16_t*>(all.a);
  const auto* const y = static_cast<const uint16_t*>(all.b);
  size_t done = 0;
  for (; done + kBlock <= all.count; done += kBlock) reduce_block(out + done, x + done, y + done);
  // The rest is copied into whole blocks, because widen() and narrow() know no others.
  const size_t rest = (all.count - done) * sizeof *out;
  if (rest == 0) return;
  uint16_t last_x[kBlock] = {}, last_y[kBlock] = {};
  __builtin_memcpy(last_x, x + done, rest);
  __builtin_memcpy(last_y, y + done, rest);
  reduce_block(last_x, last_x, last_y);
  __builtin_memcpy(out + done, last_x, rest);
}

constexpr Reductions kReductions = {
    SLIME_SIMD_NAME,
    {reduce_as<int8_t, uint8_t, float>, reduce_as<uint8_t, uint8_t, float>,
     reduce_as<int32_t, uint32_t, double>, reduce_as<uint32_t, uint32_t, double>,
     reduce_as<int64_t, uint64_t, int64_t>, reduce_as<uint64_t, uint64_t, uint64_t>,
     reduce_short<Half>, reduce_as<float, float, float>, reduce_as<double, double, double>,
     reduce_short<Bfloat>}};

}  // namespace
}  // namespace slime::perf::SLIME_SIMD_LEVEL
