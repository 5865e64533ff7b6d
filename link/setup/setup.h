// Makes links: one end listens and publishes its address, and the other connects to it. No call
// waits: call it again until the link is there. handshake.h has what the ends say.
//
// Threads: one at a time for a listener, and for a connector.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "devices/devices.h"
#include "link/link_parts.h"
#include "link/setup/link_owner.h"

namespace slime {

// Where a listener is, and what only its peers know: bytes that its owner carries to other
// processes. They are valid where the same version runs on a machine with the same byte order.
using LinkAddress = std::array<std::byte, 112>;

// If its owner asks for lifelines (LinkOwner), it goes on to call accept() while its links live:
// that also takes the calls of peers that have lost all rails. From the first link on it waits
// without a limit.
class LinkListener {
 public:
  virtual ~LinkListener() = default;
  static Result<std::unique_ptr<LinkListener>> open(Devices& devices, int device, LinkOwner& owner,
                                                    int traffic_class);
  virtual LinkAddress address() const = 0;
  // nullptr: no peer is connected yet; call again. Further calls accept further peers.
  virtual Result<std::unique_ptr<LinkParts>> accept() = 0;
  // Handshakes are under way: call accept() soon.
  virtual bool busy() const = 0;
  // Readable when a peer connects.
  virtual int descriptor() const = 0;
};

class LinkConnector {
 public:
  virtual ~LinkConnector() = default;
  // Fails at once if no listener of a compatible version has this address.
  static Result<std::unique_ptr<LinkConnector>> open(Devices& devices, int device,
                                                     const LinkAddress& to, const LinkOwner& owner,
                                                     int traffic_class);
  virtual Result<std::unique_ptr<LinkParts>> step() = 0;  // nullptr: not yet, call again
};

}  // namespace slime
