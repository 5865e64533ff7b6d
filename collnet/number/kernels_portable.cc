#include <cstddef>
#include <cstdint>

// -O2 vectorises only what is certain to pay off.
#pragma GCC optimize("O3")
#define SLIME_NUMBER_KERNELS_NAME "portable"
#include "collnet/number/kernels_body.h"

namespace slime::number {

const Kernels* kernels_portable() { return &kBodies; }

}  // namespace slime::number
