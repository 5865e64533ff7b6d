#include "collnet/number/kernels.h"

#ifdef __x86_64__

// Nobody looks at exception flags here, and with them no choice between floats is vectorised.
#pragma GCC optimize("O3", "no-trapping-math")
#pragma GCC target("avx2,f16c")
#define SLIME_NUMBER_KERNELS_F16C
#define SLIME_NUMBER_KERNELS_NAME "AVX2"
#include "collnet/number/kernels_body.h"

namespace slime::number {
const Kernels* kernels_avx2() { return &kBodies; }
}  // namespace slime::number

#else
namespace slime::number {
const Kernels* kernels_avx2() { return nullptr; }
}  // namespace slime::number
#endif
