#include "collnet/number/kernels.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace slime::number {
namespace {

const Kernels& best() {
  if (has_avx512()) return *kernels_avx512();
  if (has_avx2()) return *kernels_avx2();
  return *kernels_portable();
}

}  // namespace

#ifdef __x86_64__
bool has_avx2() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // By hand: not every compiler knows "f16c" below. AVX2 says that the system saves the registers.
  const bool halves = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
  return halves && __builtin_cpu_supports("avx2");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

const Kernels& kernels() {
  static const Kernels& chosen = best();
  return chosen;
}

}  // namespace slime::number
