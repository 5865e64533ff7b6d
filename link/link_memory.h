// The memory of a link at one end: an inbox, which the peer writes into, and an outbox, the image
// of the peer's inbox. Each record lies at the same offset in the outbox and in the peer's inbox:
// this end writes it into the outbox, and a work copies it to the peer.
//
// Layout of both: the owner's part, a JoinRecord for each rail, and room for the bytes of probes.
// Integers are in host order: both ends compare byte order and version when they connect.
// Thread: that of the link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "devices/device.h"
#include "devices/registered_buffer.h"
#include "link/immediate.h"
#include "link/setup/link_owner.h"
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

constexpr size_t join_offset(size_t owner_bytes, size_t rail) {
  return ((owner_bytes + 7) & ~size_t{7}) + rail * sizeof(JoinRecord);
}
constexpr size_t link_memory_bytes(size_t owner_bytes, size_t rails) {
  return join_offset(owner_bytes, rails) + (rails > 1 ? kProbeBytes : 0);
}

// The inbox of the peer, and its key for each rail of the link.
struct RemoteInbox {
  uint64_t address = 0;
  std::array<uint64_t, kMaxRails> keys = {};
};

// A piece of an outbox, which a work copies to the same place of the peer's inbox. 0 bytes:
// nothing.
struct OutboxPiece {
  size_t offset = 0, bytes = 0;
};

class LinkMemory {
 public:
  // `owner`: the bytes of the owner's parts.
  LinkMemory(RegisteredBuffer inbox, RegisteredBuffer outbox, const LinkMemoryBytes& owner,
             const RemoteInbox& peer)
      : inbox_(std::move(inbox)), outbox_(std::move(outbox)), owner_(owner), peer_(peer) {}

  // The owner's parts begin here.
  std::byte* inbox() const { return inbox_.data(); }
  std::byte* outbox() const { return outbox_.data(); }

  size_t inbox_bytes() const { return inbox_.region()->bytes; }
  const MemoryRegion* outbox_region() const { return outbox_.region(); }
  const RemoteInbox& peer_inbox() const { return peer_; }
  const std::byte* join_from_peer(size_t rail) const {
    return inbox() + join_offset(owner_.inbox, rail);
  }
  size_t join_to_peer(size_t rail) const { return join_offset(owner_.outbox, rail); }
  size_t probe_to_peer(size_t rails) const { return join_offset(owner_.outbox, rails); }

 private:
  const RegisteredBuffer inbox_, outbox_;
  const LinkMemoryBytes owner_;
  const RemoteInbox peer_;
};

}  // namespace slime
