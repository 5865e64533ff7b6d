// A Tofino 2 that runs switch/p4/tna/switch.p4, as a SwitchDriver.
#pragma once

#include <memory>
#include <string>

#include "switch/p4driver/p4_switch.h"

namespace slime::net {

struct TofinoOptions : P4Options {
  SocketAddress runtime;           // BFRuntime's gRPC server; bf_switchd has it on port 50052
  std::string program = "switch";  // as bf_switchd calls it (its .conf file, "program-name")
  uint32_t device = 0;             // as bf_switchd numbers its chips
  int call_ms = 2000;              // deadline of each call
};

Result<std::unique_ptr<P4Switch>> open_tofino(TofinoOptions options);

}  // namespace slime::net
