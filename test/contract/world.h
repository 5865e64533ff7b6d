// Two rails that can reach each other, whatever backend they belong to.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "test/support/verbs/nic_calls.h"
#include "transports/rail.h"

namespace slime::contract {

// What rail.h leaves open, and this backend does.
struct WorldProperties {
  bool in_real_time = false;  // things happen between calls too, not in pump() alone
  bool by_offset = false;     // works find their target by Work::remote_offset
  // kSent needs the receiver's polls (Done::Kind::kSent), with and without confirm_delivery.
  bool sent_by_polls_of_both = false;
  size_t many_channels = 300;  // that a process may have between the two rails
  // What a flusher of this world reads: device memory, or what stands for it.
  MemoryKind flushed_kind = MemoryKind::kCuda;
};

class World {
 public:
  virtual ~World() = default;
  virtual Rail& left() = 0;
  virtual Rail& right() = 0;
  // Lets time pass. False: nothing will ever happen by itself any more.
  virtual bool pump() = 0;
  // The last pump() has found nothing to move: only what the ends do, and time-outs, can change
  // anything now. False of a world that cannot tell.
  virtual bool is_at_rest() const { return false; }
  // Addresses that no channel has, made from the address of one that is open.
  virtual std::vector<ChannelAddress> alien_addresses(const ChannelAddress& real) = 0;
  virtual WorldProperties properties() const { return {}; }
  // What a rail has asked of its NIC; none where nobody counts.
  virtual std::optional<test::NicCalls> nic_calls(Rail& /*rail*/) const { return {}; }
  // What the backend itself counted as misuse or corruption.
  virtual uint64_t violations() const { return 0; }
};

}  // namespace slime::contract
