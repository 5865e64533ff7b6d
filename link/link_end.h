// The interface from a link to the end that uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "link/link_memory.h"

namespace slime {

class LinkEnd {
 public:
  virtual ~LinkEnd() = default;
  // A work of the peer has arrived, other than a control work of the link.
  virtual Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) = 0;
  // This end has fenced this life of a rail. Returns the record that tells the peer what had
  // arrived, if there is one; the notice carries it. It may be written again before the peer
  // has read that of the life before, if this end is the active one: then a life with an odd epoch
  // needs another place than one with an even one. On a link with a lifeline it has
  // LifelineHeader::kMostBytes at most.
  virtual OutboxPiece fence_record(const RailLife& life) = 0;
  // Both ends have fenced this life. It reads the peer's record, and calls
  // LinkRails::hand_back_works(), which tells the owners of the lost works; what is not known to
  // have arrived is submitted again.
  virtual Status on_both_fenced(const RailLife& life) = 0;
};

}  // namespace slime
