#include "tools/perf/own_output.h"

#include <sys/stat.h>
#include <unistd.h>

namespace slime::perf {

bool names_own_output(const std::string& path) {
  struct stat own {
  }, named{};
  if (fstat(STDOUT_FILENO, &own) != 0 || stat(path.c_str(), &named) != 0) return false;
  if (S_ISCHR(own.st_mode) && isatty(STDOUT_FILENO) == 0) return false;
  return own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

}  // namespace slime::perf
