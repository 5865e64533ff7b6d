// How slime-perf ends; documented in --help.
#pragma once

namespace slime::perf {

enum ExitCode : int {
  kExitOk = 0,
  kExitWrong = 1,    // a result was wrong
  kExitUsage = 2,    // command line, environment or launcher
  kExitFailure = 3,  // plugin, network or another rank
  kExitInterrupted = 130,
};

}  // namespace slime::perf
