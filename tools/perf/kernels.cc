#include "tools/perf/kernels.h"

namespace slime::perf {
namespace {

const Kernels& best() {
#ifdef __x86_64__
  // Every processor with AVX2 has F16C, which not all compilers can ask for.
  if (__builtin_cpu_supports("avx2")) return *kernels_avx2();
#endif
  return *kernels_portable();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = best();
  return chosen;
}

}  // namespace slime::perf
