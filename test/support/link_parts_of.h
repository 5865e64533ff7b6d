// The parts of a link that carries messages, made without a handshake.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "link/link_parts.h"
#include "link/setup/handshake.h"
#include "message/message_owner.h"

namespace slime::test {

inline LinkParts link_parts_of(std::vector<LinkChannel> channels, bool active, uint32_t eager_max,
                               std::string peer, const Side& peer_side, RegisteredBuffer inbox,
                               RegisteredBuffer outbox) {
  return {std::move(inbox),
          std::move(outbox),
          std::move(channels),
          active,
          kNoTrafficClass,
          std::move(peer),
          MessageWords{.eager_max = eager_max}.pack(),
          {peer_side.inbox_address, peer_side.inbox_keys}};
}

}  // namespace slime::test
