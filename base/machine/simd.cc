#include "base/machine/simd.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace slime {
namespace {

SimdLevel find_level() {
#ifdef __x86_64__
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // cpuid is read here, because not every compiler knows "f16c" below. AVX2 implies that the system
  // saves the registers.
  const bool has_halves = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
  if (!has_halves || !__builtin_cpu_supports("avx2")) return SimdLevel::kPortable;
  const bool has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_512 ? SimdLevel::kAvx512 : SimdLevel::kAvx2;
#else
  return SimdLevel::kPortable;
#endif
}

}  // namespace

SimdLevel simd_level() {
  static const SimdLevel level = find_level();
  return level;
}

}  // namespace slime
