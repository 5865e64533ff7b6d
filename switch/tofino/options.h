// What a switch on Tofino is told to be.
#pragma once

#include <string>

#include "switch/p4driver/options.h"

namespace slime::net {

struct TofinoOptions : P4Options {
  SocketAddress runtime;           // BFRuntime's gRPC server; bf_switchd has it on port 50052
  std::string program = "switch";  // as bf_switchd calls it (its .conf file, "program-name")
  uint32_t device = 0;             // as bf_switchd numbers its chips
  int call_ms = 2000;              // deadline of each call
};

}  // namespace slime::net
