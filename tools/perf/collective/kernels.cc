#include "tools/perf/collective/kernels.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// -O2 vectorises only what is certain to pay off.
#pragma GCC push_options
#pragma GCC optimize("O3")
#define SLIME_SIMD_LEVEL portable
#define SLIME_SIMD_NAME "portable"
#include "tools/perf/collective/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#pragma GCC pop_options

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC optimize("O3")
#pragma GCC target("avx2,f16c")
#define SLIME_SIMD_F16C
#define SLIME_SIMD_LEVEL avx2
#define SLIME_SIMD_NAME "AVX2"
#include "tools/perf/collective/kernels_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#undef SLIME_SIMD_F16C
#pragma GCC pop_options
#endif

namespace slime::perf {
namespace {

#ifdef __x86_64__
constexpr SimdTables<Kernels> kLevels(&portable::kBodies, &avx2::kBodies);
#else
constexpr SimdTables<Kernels> kLevels(&portable::kBodies);
#endif

}  // namespace

const SimdTables<Kernels>& kernel_levels() { return kLevels; }

const Kernels& kernels() {
  static const Kernels& chosen = kLevels.best();
  return chosen;
}

}  // namespace slime::perf
