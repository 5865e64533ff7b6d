// Command line of the pauser.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace slime::pauser {

enum ExitCode : int {  // otherwise as the command ends, 128 + N after signal N
  kExitUsage = 2,
  kExitSkipped = 77,  // this process may trace nobody
  kExitCannotRun = 126,
  kExitNotFound = 127,
};

struct Options {
  double rate = 30;      // stops a second
  double longest_s = 1;  // of one stop
  uint64_t seed = 0;
  std::vector<char*> command;  // ends with a null pointer, for execvp
};

// What is to be done, or the exit code.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace slime::pauser
