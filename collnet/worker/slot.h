// One slot of a worker: the chunk that it is on and the round of it that is under way.
//
// States:
//   idle       !waiting: `chunk` is the next of its stream, and its operation has not started
//   waiting    `sent` is under way to the shard or rank that serves the slot, for round `epoch`
//   asking     waiting, and `holder` is set: after a move a peer has the result of this round, so
//              this worker asks for it and contributes nothing
// Only the worker's own thread changes a slot. A round that is sent again is the same bytes: the
// packet is not touched while `waiting` is set.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "collnet/payload/special_values.h"
#include "collnet/worker/recovery.h"
#include "collnet/worker/retransmission.h"
#include "collnet/worker/stages.h"
#include "switch/protocol/slot_machine.h"

namespace slime {

struct Slot {
  uint64_t chunk = 0;  // of the job's stream: worked on, or next
  uint32_t epoch = sap::kFirstEpoch;
  bool waiting = false;
  uint32_t damaged = 0;            // results of this round that were found damaged
  std::optional<uint32_t> holder;  // rank that has this round's result
  sap::Header sent;                // of the packet
  ChunkState state;
  RoundTimer timer;
  KeptResult kept;  // of the round before
  std::byte* packet = nullptr;
  StageBuffers buffers;

  std::span<const std::byte> contribution() const {
    return {packet, sap::kHeaderBytes + 4 * size_t{sent.lanes}};
  }
};

// The memory of all slots, in one piece.
class SlotMemory {
 public:
  SlotMemory(uint32_t slots, uint32_t lanes)
      : packet_bytes_(rounded(sap::kHeaderBytes + 4 * size_t{lanes})),
        lanes_bytes_(rounded(4 * size_t{lanes})),
        flags_bytes_(rounded(4 * size_t{flag_lanes_for(most_floats(lanes))})),
        memory_(std::make_unique<std::byte[]>(slots * slot_bytes() + lanes_bytes_)) {}

  // Of the slot with this index.
  void give(uint32_t index, Slot* slot) const {
    std::byte* at = memory_.get() + lanes_bytes_ + index * slot_bytes();
    slot->packet = at;
    slot->kept.use(at += packet_bytes_);
    slot->buffers = {.lanes = slot->packet + sap::kHeaderBytes,
                     .flags = at + packet_bytes_,
                     .earlier = at + packet_bytes_ + flags_bytes_,
                     .finite = memory_.get()};
  }

 private:
  static constexpr size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t slot_bytes() const { return 2 * packet_bytes_ + flags_bytes_ + lanes_bytes_; }

  const size_t packet_bytes_, lanes_bytes_, flags_bytes_;
  const std::unique_ptr<std::byte[]> memory_;
};

}  // namespace slime
