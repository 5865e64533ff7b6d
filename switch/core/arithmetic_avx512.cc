#include "switch/core/arithmetic.h"

#ifdef __x86_64__
#pragma GCC optimize("O3")
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2")
#define SLIME_ARITHMETIC_NAME "AVX-512"
#include "switch/core/arithmetic_body.h"

namespace slime::net {
const Arithmetic* arithmetic_avx512() { return &kBodies; }
}  // namespace slime::net

#else
namespace slime::net {
const Arithmetic* arithmetic_avx512() { return nullptr; }
}  // namespace slime::net
#endif
