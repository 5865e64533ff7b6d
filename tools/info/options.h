// The command line.
#pragma once

#include <optional>
#include <string>
#include <variant>

namespace slime::info {

struct Options {
  bool devices = false, loading = false, settings = false, topology = false;
  bool transports = false;
  bool markdown = false;
  bool json = false;
  std::optional<std::string> plugin;  // instead of NCCL_NET_PLUGIN
  std::string nccl;                   // a version, a libnccl to ask, or "all"; empty: look for one

  // None of them: the first three.
  bool all() const { return !devices && !loading && !settings && !topology && !transports; }
};

// Exit code, when the program is to end now (0 after --help; 2 for a bad command line).
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace slime::info
