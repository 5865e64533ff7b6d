#include "collnet/number/kernels.h"

#include <type_traits>

#ifdef __x86_64__
#include <immintrin.h>
#endif

// -O2 vectorises only what is certain to pay off. Nobody looks at exception flags here, and with
// them no choice between floats is vectorised.
#pragma GCC push_options
#pragma GCC optimize("O3")
#define SLIME_SIMD_LEVEL portable
#define SLIME_SIMD_NAME "portable"
#include "collnet/number/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#pragma GCC pop_options

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC optimize("O3", "no-trapping-math")
#pragma GCC target("avx2,f16c")
#define SLIME_SIMD_F16C
#define SLIME_SIMD_LEVEL avx2
#define SLIME_SIMD_NAME "AVX2"
#include "collnet/number/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#undef SLIME_SIMD_F16C
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC optimize("O3", "no-trapping-math")
#pragma GCC target("avx2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512,f16c")
#define SLIME_SIMD_F16C
#define SLIME_SIMD_LEVEL avx512
#define SLIME_SIMD_NAME "AVX-512"
#include "collnet/number/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#undef SLIME_SIMD_F16C
#pragma GCC pop_options
#endif

namespace slime::number {
namespace {

#ifdef __x86_64__
constexpr SimdTables<Kernels> kLevels(&portable::kBodies, &avx2::kBodies, &avx512::kBodies);
#else
constexpr SimdTables<Kernels> kLevels(&portable::kBodies);
#endif

}  // namespace

const SimdTables<Kernels>& kernel_levels() { return kLevels; }

const Kernels& kernels() {
  static const Kernels& chosen = kLevels.best();
  return chosen;
}

}  // namespace slime::number
