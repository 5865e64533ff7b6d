// What the ends of a link tell each other of their rails, and whether two of them can be paired.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/link/records.h"
#include "transports/rail.h"

namespace slime {

// Texts end with a zero, unless they fill their array. From a peer they may hold anything.
struct RailDescription {
  std::array<char, 32> name = {};
  std::array<char, 16> backend = {};     // RailCaps::transport
  std::array<char, 16> link_layer = {};  // empty: any
  std::array<char, 32> fabric = {};      // empty: any
  uint32_t mtu = 0;                      // bytes; 0: not known
  uint32_t speed_mbps = 0;
};

struct RailDescriptions {
  uint32_t count = 0;
  std::array<RailDescription, kMaxRails> all = {};
};

RailDescriptions describe_rails(std::span<Rail* const> rails);

// A rail, and the process whose it is ("host:pid").
struct RailOfHost {
  const RailDescription& rail;
  const std::string& host;
};
// Checks whether our rail can reach the peer's. The error names both rails and their hosts, and
// says what differs.
Result<void> check_fit(const RailOfHost& own, const RailOfHost& peer);

// What a channel between them can carry.
uint32_t common_speed_mbps(const RailDescription& own, const RailDescription& peer);

// Text from a peer, up to the first zero; what a terminal would obey becomes '?'.
std::string printable_field(std::span<const char> text);

}  // namespace slime
