// Ranges of addresses that a user writes: "10.1.0.0/16", "fd00::/8".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/socket.h"

namespace slime {

struct AddressRange {
  using Bytes = std::array<uint8_t, 16>;  // of IPv6; an IPv4 address is mapped: ::ffff:a.b.c.d
  Bytes prefix = {};
  int bits = 0;

  static std::optional<AddressRange> parse(std::string_view text);
  static Bytes bytes_of(const SocketAddress& address);
  // The subnet of an address: the range of those that begin with the same `bits`.
  static AddressRange around(const SocketAddress& address, int bits);
  std::string to_string() const;
  bool has(const Bytes& address) const;
  bool has(const SocketAddress& address) const;
};

inline constexpr AddressRange::Bytes kMappedIpv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// A comma-separated list of at least one. nullopt: a part of it is no range.
std::optional<std::vector<AddressRange>> parse_ranges(std::string_view text);

}  // namespace slime
