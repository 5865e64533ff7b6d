// What set-up hands to a comm: connected channels, and where the peer's inbox is.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/link/records.h"
#include "engine/registered_buffer.h"
#include "transports/rail.h"

namespace slime {

// The inbox of the peer, with its key on each channel of the link.
struct RemoteInbox {
  uint64_t address = 0;
  std::array<uint64_t, kMaxRails> keys = {};
};

// What this end writes for the peer to read: each record lies at the same offset in the outbox and
// in the inbox of the peer.
struct Outbox {
  RegisteredBuffer buffer;
  const RemoteInbox peer_inbox;

  std::byte* at(size_t offset) const { return buffer.data() + offset; }
};

struct LinkChannel {
  std::unique_ptr<Channel> channel;
  size_t device_rail_index = 0;  // the position of its rail in the device
  uint32_t speed_mbps = 0;       // advertised by the slower end
};

struct LinkParts {
  std::vector<LinkChannel> channels;  // in the order both ends agreed on
  bool active = false;                // this end connects, and tries to get dead rails back
  int traffic_class = kNoTrafficClass;
  bool host_memory = false;  // CommOptions
  RemoteInbox peer_inbox;
  uint32_t eager_max = 0;  // agreed: the smaller of both ends' settings
  std::string peer;        // for errors: host, process, address
};

}  // namespace slime
