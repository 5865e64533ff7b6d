// What set-up hands to a comm: connected channels, and where the peer's inbox is.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/box.h"
#include "engine/records.h"
#include "transports/rail.h"

namespace slime {

// A block of memory of the peer, with its key on each channel of the link.
struct RemoteBox {
  uint64_t address = 0;
  std::array<uint64_t, kMaxRails> keys = {};
};

struct LinkParts {
  std::vector<std::unique_ptr<Channel>> channels;  // in the order both ends agreed on
  std::vector<size_t> device_rails;  // for each channel, the position of its rail in the device
  bool active = false;               // this end connects, and tries to get dead rails back
  int traffic_class = kNoTrafficClass;
  RemoteBox peer_inbox;
  uint32_t eager_max = 0;  // agreed: the smaller of both ends' settings
  std::string peer;        // for errors: host, process, address
};

}  // namespace slime
