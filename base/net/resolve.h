// Translates a host and port that a user writes into an address. Unlike base/net/socket.h this may
// wait for the resolver.
#pragma once

#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime {

// `text` is "host:port", "host" or "[::1]:port", with numbers or a name. The error begins with
// `what`: the setting and its purpose. A port that is missing, or 0, becomes `default_port`.
Result<SocketAddress> resolve(const std::string& text, uint16_t default_port, const char* what);

}  // namespace slime
