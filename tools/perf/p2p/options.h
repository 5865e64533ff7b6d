// The command line of slime-perf p2p.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace slime::perf::p2p {

enum class Operation : uint8_t { kRead, kWrite, kSend, kSignal, kNotify };

const char* name_of(Operation operation);
// The program at the target takes part.
inline bool takes_two(Operation operation) {
  return operation == Operation::kSend || operation == Operation::kNotify;
}

struct Options {
  Operation operation = Operation::kWrite;
  std::vector<uint64_t> sizes = {8, 4096, 64 << 10, 1 << 20, 16 << 20};  // of an assignment
  uint32_t batch = 1;                                                    // assignments a request
  uint32_t concurrency = 1;                                              // open requests
  double seconds = 1;                                                    // of each size
  uint32_t turns = 1;  // of these, by turns with the plain loop
  bool raw = false;    // also measure a plain loop (plain.h)
  bool check = true;
  bool immediate = false;  // each request tells the target when it is done
  bool plan = false;       // requests start a plan that was prepared before
  int ranks = 0;           // 0: from the launcher's environment, else 2
  std::string rendezvous, json_path;
  double timeout_s = 120;
};

// Exit code, when the program is to end now.
std::variant<Options, int> parse_options(int argc, char** argv);
// What all ranks must be given alike.
std::string common_arguments(const Options& options);

int run(int argc, char** argv);

}  // namespace slime::perf::p2p
