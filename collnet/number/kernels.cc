#include "collnet/number/kernels.h"

namespace slime::number {
namespace {

const Kernels& best() {
#ifdef __x86_64__
  const bool halves = __builtin_cpu_supports("f16c");
  if (halves && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return *kernels_avx512();
  }
  if (halves && __builtin_cpu_supports("avx2")) return *kernels_avx2();
#endif
  return *kernels_portable();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = best();
  return chosen;
}

}  // namespace slime::number
