// The form of NCCL_SLIME_SWITCH: which switches, and how much of each operation each one takes.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/socket.h"

namespace slime {

inline constexpr uint32_t kMaxSwitches = 8;
inline constexpr uint32_t kMaxSwitchWeight = 64;
inline constexpr uint16_t kSwitchPort = 28900;  // of a control channel, where none is written

struct ListedSwitch {
  std::string text;  // as it is written
  HostPort where;
  uint32_t weight = 1;
};

// An error about `text`, a whole list or one part of it.
tl::unexpected<Error> bad_switches(std::string_view text, const std::string& why);

// The parts of "host:port,host:port*2": one to kMaxSwitches. Looks no name up.
Result<std::vector<ListedSwitch>> split_switches(std::string_view text);

}  // namespace slime
