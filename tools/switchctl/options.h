// The command line, and how the program ends.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace slime::switchctl {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,  // no connection, or the switch refused
  kExitUsage = 2,    // command line, or a file it names
};

enum class Command : uint8_t { kShow, kStats, kFence, kDrain };

struct Options {
  Command command = Command::kShow;
  std::string address = "127.0.0.1";  // the port may be left out
  std::string key_file;
  double timeout_s = 5;
  bool json = false;
  uint16_t job = 0;  // kFence
  bool on = false;   // kDrain
};

// Exit code, when the program is to end now (0 after --help; 2 for a bad command line).
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace slime::switchctl
