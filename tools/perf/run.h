// From the command line to an exit code: the ranks of a local run, and one rank.
#pragma once

#include "tools/perf/options.h"
#include "tools/perf/words.h"

namespace slime::perf {

enum ExitCode : int {
  kExitOk = 0,
  kExitWrong = 1,    // a result was wrong
  kExitUsage = 2,    // command line, environment or launcher
  kExitFailure = 3,  // plugin, network or another rank
  kExitInterrupted = 130,
};

// One rank, from joining the others to its exit code.
int run_rank(const Options& options, const Identity& identity, const std::string& command);

}  // namespace slime::perf
