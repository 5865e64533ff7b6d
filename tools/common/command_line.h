// Parsing of command lines: what all tools do alike.
#pragma once

#include <slime_version.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "tools/common/exit.h"

namespace slime::tools {

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

}  // namespace slime::tools
