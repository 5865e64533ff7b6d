// The command line.
#pragma once

#include <string>
#include <variant>

namespace slime::switchd {

struct Options {
  std::string config;  // a file; empty: defaults
  bool check = false;
  bool print = false;
};

// Exit code, when the program is to end now (0 after --help; 2 for a bad command line).
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace slime::switchd
