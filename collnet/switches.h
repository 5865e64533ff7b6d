// The switches that a rank names: NCCL_SLIME_SWITCH, or Options::switch_address.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"
#include "switch/protocol/control.h"

namespace slime {

inline constexpr uint32_t kMaxSwitches = control::kMaxShares;
inline constexpr uint32_t kMaxSwitchWeight = 64;

struct NamedSwitch {
  SocketAddress control;  // its control channel
  uint32_t weight = 1;    // how much of each operation it takes, beside the others
  bool operator==(const NamedSwitch&) const = default;
};

// "host:port,host:port*2": addresses or names, a weight after a '*'. One to kMaxSwitches, of one IP
// version, each named once. Waits for the resolver.
Result<std::vector<NamedSwitch>> parse_switches(const std::string& text);

}  // namespace slime
