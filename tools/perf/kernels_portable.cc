#include <cstddef>
#include <cstdint>

// -O2 vectorises only what is certain to pay off.
#pragma GCC optimize("O3")
#define SLIME_KERNELS_NAME "portable"
#include "tools/perf/kernels_body.h"

namespace slime::perf {

const Kernels* kernels_portable() { return &kBodies; }

}  // namespace slime::perf
