// Checks of what this code must guarantee by itself, whatever a peer or a user does. Sanitizer
// builds, `make OPT=-O0` (or -Og) and `make CHECKS=1` end the process where one fails. Other builds
// do not evaluate it.
#pragma once

#ifdef SLIME_CHECKS
#include <cstdio>
#include <cstdlib>

namespace slime {
[[noreturn, gnu::cold]] inline void check_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
  std::abort();
}
}  // namespace slime
#define SLIME_CHECK(condition) \
  ((condition) ? void() : ::slime::check_failed(#condition, __FILE__, __LINE__))
#else
#define SLIME_CHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
