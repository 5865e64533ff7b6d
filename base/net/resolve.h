// From what a user writes to an address. Unlike base/net/socket.h this may wait: for the resolver.
#pragma once

#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime {

// "host:port", "host", "[::1]:port": numbers or a name. `what` is said where it fails: the setting
// and what it is for. A port that is missing, or 0, becomes `default_port`.
Result<SocketAddress> resolve(const std::string& text, uint16_t default_port, const char* what);

}  // namespace slime
