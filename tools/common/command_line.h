// Parsing of command lines, error messages and exit codes: what all tools do alike.
#pragma once

#include <slime_version.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

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

// The exit code, if the program is to end now: kExitOk after --help and --version (`failure` where
// they could not be written), kExitUsage for a bad command line. `explain` may print what is wrong
// with it, and returns whether it has.
template <typename Explain>
std::optional<int> parse(CLI::App* app, int argc, char** argv, int failure, Explain explain) {
  app->set_version_flag("--version", app->get_name() + " " SLIME_VERSION " (" SLIME_COMMIT ")");
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way to report it
    const bool is_wrong = error.get_exit_code() != 0;
    if (!is_wrong || !explain()) (void)app->exit(error);  // by std::cout, which is stdout
    return is_wrong ? kExitUsage : finish(app->get_name().c_str(), kExitOk, failure);
  }
  return std::nullopt;
}
inline std::optional<int> parse(CLI::App* app, int argc, char** argv, int failure = kExitFailure) {
  return parse(app, argc, argv, failure, [] { return false; });
}

inline int complain(const char* program, const Error& error, int code) {
  fprintf(stderr, "%s: %s\n", program, displayed(error.what, 4 * kMostShown).c_str());
  return code;
}

}  // namespace slime::tools
