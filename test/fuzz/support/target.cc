#include "test/fuzz/support/target.h"

#include <cstdio>
#include <cstdlib>

namespace slime::fuzz {

void violated(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: violated: %s\n", file, line, what);
  std::abort();
}

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

}  // namespace slime::fuzz
