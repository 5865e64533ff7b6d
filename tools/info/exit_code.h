// How slime-info ends; documented in --help.
#pragma once

namespace slime::info {

enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 2,     // command line, or a file it names
  kExitUnusable = 3,  // something keeps NCCL from using the plugin
};

}  // namespace slime::info
