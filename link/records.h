// What the two ends of a link write into each other's inbox for the link itself. Their owners'
// inboxes have places for it (link_end.h). Integers are in host order: both ends compare byte order
// and version when they connect.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/device.h"
#include "link/immediate.h"
#include "transports/rail.h"

namespace slime {

static_assert(kMaxRails <= 1u << RailLife::kRailBits);

// The address of the new channel of a rail that returns to its link.
struct JoinRecord {
  uint32_t rail = 0;
  uint32_t epoch = 0;
  ChannelAddress address = {};
};

// Probes that measure a rail's rate write so many bytes; nobody reads them.
inline constexpr size_t kProbeBytes = 16 << 10;

}  // namespace slime
