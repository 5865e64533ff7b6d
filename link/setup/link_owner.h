// Who will own a link, as the set-up of the link sees it: what both owners tell each other in the
// handshake, and how much memory the peer may write into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "link/lifeline/stream.h"

namespace slime {

class Poller;
class Rail;

// The owners' own part of the handshake. The link moves these bytes and does not read them.
using OwnerWords = std::array<std::byte, 64>;

struct LinkMemoryBytes {
  size_t inbox = 0;   // the peer writes into it
  size_t outbox = 0;  // the image of the peer's inbox at this end
};

// It outlives the set-up of its links. Thread: that of the set-up.
class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  // What the connecting end says in its hello.
  virtual OwnerWords offer() const = 0;
  // What the listening end says in its welcome. An error refuses the peer, which gets the text.
  virtual Result<OwnerWords> answer(const OwnerWords& offer) const = 0;
  // Whether the answer fits the offer, at the connecting end.
  virtual bool accepts(const OwnerWords& answer) const = 0;
  // The owner's part of the memory of a link with this answer, at the end that connected (`active`)
  // or listened.
  virtual LinkMemoryBytes memory_bytes(const OwnerWords& answer, bool active,
                                       size_t channels) const = 0;
  // For how long a link with this answer lives without a rail that is up; 0: it fails with its last
  // rail, at both ends.
  virtual double lifeline_seconds(const OwnerWords& /*answer*/) const { return 0; }
  // ChannelOptions::depth of its channels, the same at both ends.
  virtual uint32_t channel_depth(const OwnerWords& /*answer*/) const { return 0; }
  // The poller of the channels of this rail, also of those that bring the rail back, of a link with
  // this answer at the end that connected (`active`) or listened; nullptr: none. It outlives the
  // link. It calls a channel by the tag of its link (tag_of, link_parts.h).
  virtual Poller* poller(const Rail& /*rail*/, const OwnerWords& /*answer*/,
                         bool /*active*/) const {
    return nullptr;
  }
  // At the listening end: peers may come at any time, so accept() has no deadline.
  virtual bool expects_peers_for_ever() const { return false; }
  // At the listening end: a peer that has lost all rails of the link with this id (LinkParts::id)
  // dials for it. has_link(): whether this end still has the link, and it has not failed. resume():
  // it has; the owner gives the stream to Link::take_lifeline() when no other thread is in the
  // link. Thread: that of accept().
  virtual bool has_link(const Nonce& /*id*/) const { return false; }
  virtual void resume(const Nonce& /*id*/, std::unique_ptr<LifelineStream> /*stream*/) {}
};

}  // namespace slime
