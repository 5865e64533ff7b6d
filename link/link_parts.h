// The result of set-up, which an owner takes over: connected channels, and the inboxes of both
// ends.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "link/lifeline/stream.h"
#include "link/link_memory.h"
#include "transports/rail.h"

namespace slime {

// Random: the connector draws it, and both ends have it.
using LinkId = Nonce;

// What pollers call all channels of this end of a link; both ends may be in one process.
inline uint64_t tag_of(const LinkId& link, bool active) {
  uint64_t tag = 0;
  std::memcpy(&tag, link.data(), sizeof tag);
  return (tag & ~uint64_t{1}) | (active ? 1 : 0);
}

struct LinkChannel {
  std::unique_ptr<Channel> channel;
  size_t device_rail_index = 0;  // the position of its rail in the device
  uint32_t speed_mbps = 0;       // advertised by the slower end
  bool connected = true;         // false: both ends have fenced it; the rail joins the link later
  Poller* poller = nullptr;      // of this channel and those that replace it
};

struct LinkParts {
  RegisteredBuffer inbox, outbox;    // first of these: channels end before the memory they use
  LinkMemoryBytes owner_bytes = {};  // of these, for the owner
  std::vector<LinkChannel> channels = {};  // in the order both ends agreed on
  bool active = false;                     // this end connected, and tries to bring dead rails back
  int traffic_class = kNoTrafficClass;
  std::string peer = {};  // for errors: host, process, address
  OwnerWords words = {};  // of the listening end's owner
  RemoteInbox peer_inbox = {};
  LinkId id = {};
  // For how long the link lives without a rail that is up, in polled time (LinkClock); 0: it fails
  // with its last rail.
  double lifeline_seconds = 0;
  uint32_t channel_depth = 0;                            // ChannelOptions::depth of all channels
  std::unique_ptr<LifelineDialer> lifeline_dialer = {};  // of the active end
};

}  // namespace slime
