// The machine that a result was measured on.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace slime::tools {

struct Machine {
  std::string host;
  std::string kernel;  // "Linux 6.1.0 x86_64"
  std::string cpu;     // model name
  unsigned cores = 0;  // that this process may use
  uint64_t memory_bytes = 0;
  uint64_t available_bytes = 0;  // what can be allocated without swapping
};

Machine describe_machine();
nlohmann::json to_json(const Machine& machine);

}  // namespace slime::tools
