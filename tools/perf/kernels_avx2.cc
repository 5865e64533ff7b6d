#include "tools/perf/kernels.h"

#ifdef __x86_64__
#include <immintrin.h>

#pragma GCC optimize("O3")
#pragma GCC target("avx2,f16c")
#define SLIME_KERNELS_F16C
#define SLIME_KERNELS_NAME "AVX2"
#include "tools/perf/kernels_body.h"

namespace slime::perf {
const Kernels* kernels_avx2() { return &kBodies; }
}  // namespace slime::perf

#else
namespace slime::perf {
const Kernels* kernels_avx2() { return nullptr; }
}  // namespace slime::perf
#endif
