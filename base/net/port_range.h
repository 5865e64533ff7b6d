// The ports that a user lets this process listen on ("40000-40999"), for firewalls and NAT.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/net/socket.h"

namespace slime {

struct PortRange {
  uint16_t first = 0, last = 0;  // 0: any port

  // "40000-40999", or one port; from 1 on.
  static std::optional<PortRange> parse(std::string_view text);
  static PortRange of_setting(std::string_view text) { return parse(text).value_or(PortRange()); }
  bool is_given() const { return first != 0; }
};

// As bind(2) and listen_on(), at a port of the range that is free; its ports are tried one after
// the other, from a random one on. Without a range the kernel chooses. The port of `address` does
// not count.
Result<void> bind_within(const Fd& fd, SocketAddress address, const PortRange& ports);
Result<Fd> listen_within(SocketAddress address, const PortRange& ports);

}  // namespace slime
