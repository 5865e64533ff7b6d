// The command line, and the rows of the table that it asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/perf/words.h"

namespace slime::perf {

enum ExitCode : int {
  kExitOk = 0,
  kExitWrong = 1,    // a result was wrong
  kExitUsage = 2,    // command line, environment or launcher
  kExitFailure = 3,  // plugin, network or another rank
  kExitInterrupted = 130,
};

struct Options {
  Collective collective = Collective::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  uint64_t min_bytes = 8;
  uint64_t max_bytes = 64 << 20;
  uint64_t step_bytes = 0;  // 0: multiply by step_factor
  uint32_t step_factor = 2;
  uint32_t iterations = 20;
  uint32_t warmups = 5;
  uint32_t checks = 1;
  double duration_s = 0;  // of each row; 0: iterations and checks once
  std::vector<DataType> types = {DataType::kFloat32};
  std::vector<RedOp> ops = {RedOp::kSum};
  int root = 0;  // -1: every rank in turn

  int ranks = 0;     // 0: from the launcher's environment, else 2
  int rails = 0;     // 0: not set here
  int channels = 0;  // 0: chosen
  std::optional<Protocol> protocol;
  bool direct = false;
  int max_api = 12;
  std::string plugin;        // empty: NCCL_NET_PLUGIN, else the one built beside this program
  std::vector<int> devices;  // empty: all, one channel after the other
  std::string rendezvous;
  double timeout_s = 120;
  std::string json_path;
  bool quiet = false;
  bool inject_error = false;
  bool wild_tails = false;
};

// One rank, from joining the others to its exit code (rank.cc).
int run_rank(const Options& options, const Identity& identity, const std::string& command);

// Exit code, when the program is to end now (0 after --help; 2 for a bad command line).
std::variant<Options, int> parse_options(int argc, char** argv);

// What all ranks must be given alike; not, for example, --json.
std::string common_arguments(const Options& options);

// What a row is about.
struct Case {
  DataType type;
  RedOp op;
  int root;
  uint64_t bytes;
};
// The rows of the table, in order.
std::vector<Case> cases_of(const Options& options, int ranks);

}  // namespace slime::perf
