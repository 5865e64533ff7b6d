// The sockets of a software switch: one per shard, on ports that follow each other.
#pragma once

#include <vector>

#include "base/net/socket.h"

namespace slime::net {

// `address` is that of socket 0; port 0: any block of free ports. The sockets block.
// `receive_timeout_us` bounds how long a receive call waits.
Result<std::vector<Fd>> bind_udp_block(const SocketAddress& address, uint32_t count,
                                       uint64_t buffer_bytes, uint64_t receive_timeout_us);

}  // namespace slime::net
