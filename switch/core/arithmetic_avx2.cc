#include "switch/core/arithmetic.h"

#ifdef __x86_64__
#pragma GCC optimize("O3")
#pragma GCC target("avx2")
#define SLIME_ARITHMETIC_NAME "AVX2"
#include "switch/core/arithmetic_body.h"

namespace slime::net {
const Arithmetic* arithmetic_avx2() { return &kBodies; }
}  // namespace slime::net

#else
namespace slime::net {
const Arithmetic* arithmetic_avx2() { return nullptr; }
}  // namespace slime::net
#endif
