// The parts of a link that carries messages, made without a handshake.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "link/link_parts.h"
#include "link/setup/handshake.h"
#include "message/message_owner.h"

namespace slime::test {

// The memory of both ends of such a link.
constexpr size_t cts_memory_bytes(size_t channels) {
  return link_memory_bytes(cts_inbox_bytes(channels), channels);
}
constexpr size_t eager_memory_bytes(size_t eager_max, size_t channels) {
  return link_memory_bytes(eager_inbox_bytes(eager_max), channels);
}

inline LinkParts link_parts_of(std::vector<LinkChannel> channels, bool active, uint32_t eager_max,
                               std::string peer, const Side& peer_side, RegisteredBuffer inbox,
                               RegisteredBuffer outbox) {
  const OwnerWords words = MessageWords{.eager_max = eager_max}.pack();
  const LinkMemoryBytes owner =
      MessageOwner(eager_max).memory_bytes(words, active, channels.size());
  return {std::move(inbox),
          std::move(outbox),
          owner,
          std::move(channels),
          active,
          kNoTrafficClass,
          std::move(peer),
          words,
          {peer_side.inbox_address, peer_side.inbox_keys}};
}

}  // namespace slime::test
