#include "switch/core/arithmetic.h"

#include <type_traits>

// -O2 vectorises only what is certain to pay off.
#pragma GCC push_options
#pragma GCC optimize("O3")
#define SLIME_SIMD_LEVEL portable
#define SLIME_SIMD_NAME "portable"
#include "switch/core/arithmetic_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#pragma GCC pop_options

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC optimize("O3")
#pragma GCC target("avx2")
#define SLIME_SIMD_LEVEL avx2
#define SLIME_SIMD_NAME "AVX2"
#include "switch/core/arithmetic_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC optimize("O3")
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2")
#define SLIME_SIMD_LEVEL avx512
#define SLIME_SIMD_NAME "AVX-512"
#include "switch/core/arithmetic_body.h"
#undef SLIME_SIMD_LEVEL
#undef SLIME_SIMD_NAME
#pragma GCC pop_options
#endif

namespace slime::net {
namespace {

#ifdef __x86_64__
constexpr SimdTables<Arithmetic> kLevels(&portable::kBodies, &avx2::kBodies, &avx512::kBodies);
#else
constexpr SimdTables<Arithmetic> kLevels(&portable::kBodies);
#endif

}  // namespace

const Arithmetic& arithmetic() {
  static const Arithmetic& chosen = kLevels.best();
  return chosen;
}

}  // namespace slime::net
