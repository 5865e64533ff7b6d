#include "collnet/number/kernels.h"

#include <array>
#include <type_traits>

#include "switch/protocol/check.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// -O2 vectorises only loops that are certain to become faster. Exception flags are not read here,
// and as long as they must be right, GCC vectorises no choice between floats (no-trapping-math).
#pragma GCC push_options
#pragma GCC optimize("O3")
#define SLIME_SIMD_LEVEL portable
#define SLIME_SIMD_NAME "portable"
#include "collnet/number/kernels_body.h"
#pragma GCC pop_options

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC optimize("O3", "no-trapping-math")
#pragma GCC target("avx2,f16c")
#define SLIME_SIMD_F16C
#define SLIME_SIMD_LEVEL avx2
#define SLIME_SIMD_NAME "AVX2"
#include "collnet/number/kernels_body.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC optimize("O3", "no-trapping-math")
#pragma GCC target("avx2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512,f16c")
#define SLIME_SIMD_F16C
#define SLIME_SIMD_LEVEL avx512
#define SLIME_SIMD_NAME "AVX-512"
#include "collnet/number/kernels_body.h"
#pragma GCC pop_options
#endif

namespace slime::number {
namespace {

#ifdef __x86_64__
constexpr SimdTables<Kernels> kLevels(&portable::kBodies, &avx2::kBodies, &avx512::kBodies);
#else
constexpr SimdTables<Kernels> kLevels(&portable::kBodies);
#endif

constexpr size_t kPayloadBytes = size_t{4} * sap::kMaxLanes;

template <typename T>
constexpr auto table() {
  std::array<T, kPayloadBytes / sizeof(T)> weights{};
  for (uint32_t s = 0; s < weights.size(); ++s) {
    weights[s] = static_cast<T>(sizeof(T) == 8 ? sap::weight64(s) : sap::weight(s));
  }
  return weights;
}

constexpr auto kOf8 = table<uint8_t>();
constexpr auto kOf16 = table<uint16_t>();
constexpr auto kOf32 = table<uint32_t>();
constexpr auto kOf64 = table<uint64_t>();
constexpr const void* kTables[] = {kOf8.data(), kOf16.data(), kOf32.data(), kOf64.data()};

}  // namespace

const SimdTables<Kernels>& kernel_levels() { return kLevels; }

const Kernels& kernels() {
  static const Kernels& chosen = kLevels.best();
  return chosen;
}

const std::byte* weights(size_t width_log2, size_t first) {
  return static_cast<const std::byte*>(kTables[width_log2]) + (first << width_log2);
}

}  // namespace slime::number
