// Exit codes and error messages: what all tools do alike.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace slime::tools {

// Documented in each tool's --help.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,  // the machine, the network or the other end
  kExitUsage = 2,    // command line, or a file that it names
};

// `code`, if everything could be written to standard output, else `failure`, with a complaint.
inline int finish(const char* program, int code = kExitOk, int failure = kExitFailure) {
  const bool flushed = fflush(stdout) == 0;
  if (flushed && ferror(stdout) == 0) return code;
  fprintf(stderr, "%s: standard output: %s\n", program,
          flushed ? "not all of it could be written" : strerror(errno));
  return failure;
}

inline int complain(const char* program, const Error& error, int code) {
  fprintf(stderr, "%s: %s\n", program, displayed(error.what, 4 * kMostShown).c_str());
  return code;
}

}  // namespace slime::tools
