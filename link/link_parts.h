// The result of set-up, which an owner takes over: connected channels, and the inboxes of both
// ends.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "devices/registered_buffer.h"
#include "link/records.h"
#include "link/setup/link_owner.h"
#include "transports/rail.h"

namespace slime {

// The inbox of the peer, and its key for each channel of the link.
struct RemoteInbox {
  uint64_t address = 0;
  std::array<uint64_t, kMaxRails> keys = {};
};

// The image of the peer's inbox at this end: each record lies at the same offset in the outbox and
// in the inbox. This end writes a record into the outbox, and a work copies it to the peer.
struct Outbox {
  RegisteredBuffer buffer;
  const RemoteInbox peer_inbox;

  std::byte* at(size_t offset) const { return buffer.data() + offset; }
};

struct LinkChannel {
  std::unique_ptr<Channel> channel;
  size_t device_rail_index = 0;  // the position of its rail in the device
  uint32_t speed_mbps = 0;       // advertised by the slower end
  bool connected = true;         // false: both ends have fenced it; the rail joins the link later
};

struct LinkParts {
  RegisteredBuffer inbox, outbox;     // first of these: channels end before the memory they use
  std::vector<LinkChannel> channels;  // in the order both ends agreed on
  bool active = false;                // this end connected, and tries to bring dead rails back
  int traffic_class = kNoTrafficClass;
  std::string peer;       // for errors: host, process, address
  OwnerWords words = {};  // of the listening end's owner
  RemoteInbox peer_inbox;
};

}  // namespace slime
