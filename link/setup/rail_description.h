// The descriptions of rails that the ends of a link exchange, and the check whether two rails can
// be paired.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "devices/device.h"
#include "transports/rail.h"

namespace slime {

// A text ends with a zero, unless it fills its array. Texts from a peer may contain any bytes.
struct RailDescription {
  std::array<char, 32> name = {};
  std::array<char, 16> backend = {};     // RailCaps::transport
  std::array<char, 16> link_layer = {};  // empty: any
  std::array<char, 32> fabric = {};      // empty: any
  std::array<char, 48> subnet = {};      // RailCaps::subnet
  uint32_t mtu = 0;                      // bytes; 0: not known
  uint32_t speed_mbps = 0;
};

struct RailDescriptions {
  uint32_t count = 0;
  std::array<RailDescription, kMaxRails> all = {};
};

RailDescriptions describe_rails(std::span<Rail* const> rails);

// A rail, and the process that it belongs to ("host:pid").
struct RailOfHost {
  const RailDescription& rail;
  const std::string& host;
};
// Checks whether a rail of this end can reach a rail of the peer. The error names both rails and
// their hosts, and says what differs.
Result<void> check_fit(const RailOfHost& own, const RailOfHost& peer);

// The rails of a channel: positions in the devices of both ends.
struct RailPair {
  uint8_t active = 0, passive = 0;
};
// The rails of the channels of a link: each rail of the end with more of them once, with one of the
// other end in the same subnet where there is one, else in order. Rails of the other end are used
// evenly.
std::vector<RailPair> pair_rails(const RailDescriptions& active, const RailDescriptions& passive);

// The speed of a channel between the two rails.
uint32_t common_speed_mbps(const RailDescription& own, const RailDescription& peer);

// Text from a peer, up to the first zero. Control characters for a terminal become '?'.
std::string printable_field(std::span<const char> text);

}  // namespace slime
