#pragma GCC optimize("O3")
#define SLIME_ARITHMETIC_NAME "portable"
#include "switch/core/arithmetic_body.h"

namespace slime::net {

const Arithmetic* arithmetic_portable() { return &kBodies; }

namespace {

const Arithmetic* best() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    return arithmetic_avx512();
  }
  if (__builtin_cpu_supports("avx2")) return arithmetic_avx2();
#endif
  return arithmetic_portable();
}

}  // namespace

const Arithmetic& arithmetic() {
  static const Arithmetic* const chosen = best();
  return *chosen;
}

}  // namespace slime::net
