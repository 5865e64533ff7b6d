// How slime-switchd ends; documented in --help.
#pragma once

namespace slime::switchd {

enum ExitCode : int {
  kExitOk = 0,       // asked to end
  kExitFailure = 1,  // an address, memory or the machine
  kExitUsage = 2,    // command line or configuration
};

}  // namespace slime::switchd
