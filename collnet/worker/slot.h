// One slot of a worker: the chunk that it is on, where that is in its rounds, and the round that is
// under way.
//
// States:
//   idle       !waiting: `chunk` is the next of its stream, and its operation has not started
//   waiting    `sent` is under way to the shard or rank that serves the slot, for round `epoch`
//   asking     waiting, and `holder` is set: after a move a peer has the result of this round, so
//              this worker asks for it and contributes nothing
// Only the worker's own thread changes a slot. A round that is sent again is the same bytes: the
// packet is not touched while `waiting` is set.
//
// How a job goes on elsewhere, without its switch or on it again: a slot's workers are at most one
// round apart, and a worker that is ahead has kept the result that the others lack. So all pause,
// exchange their epochs, and resume: a worker that lacks a result asks one that has it; all other
// rounds begin again in the new generation. The shard that serves a slot after the move starts
// without contributions, so nothing is summed twice. The workers agree on exponents again: damage
// may have given two workers different ones, and then no check would hold.
//
// Without a switch the workers are switches to each other: the same packets, slot machine and sums,
// so the same bits, and 2 (n - 1) / n times the bytes in each direction, as in a ring.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "collnet/payload/payload.h"
#include "collnet/worker/job_route.h"
#include "collnet/worker/retransmission.h"
#include "switch/protocol/slot_machine.h"

namespace slime {

// The newest result that a slot has accepted: a peer may need it. Empty until the first keep(),
// which every later one replaces.
class KeptResult {
 public:
  // `packet`: memory for a full packet, which stays the caller's.
  void use(std::byte* packet) { packet_ = packet; }
  void keep(const sap::Header& result, std::span<const std::byte> payload);
  // The packet for a peer, as one of the job where that runs now. Empty: nothing was kept.
  std::span<const std::byte> packet_for(const JobRoute& route, const sap::Contributors& all);

 private:
  std::byte* packet_ = nullptr;
  std::optional<sap::Header> header_;
};

enum class Stage : uint8_t { kExponents, kGuess, kFlags, kFine, kUpper, kData };  // stages.h

// Where the chunk of a slot is in its rounds. `scales`, `last` and `steady` outlive a chunk.
struct ChunkState {
  Stage stage = Stage::kData;  // of the round under way
  bool agreed = false;         // `scales` are of this chunk, and all workers have them
  bool flagged = false;        // its flags are in
  bool coarse = false;         // numbers were lost: it needs a finer round
  bool fine = false;           // the exponents of its single elements are in, all of them
  bool upper = false;          // its upper words are in
  bool steady = false;         // the last chunk was finite, and had the scales of the one before
  uint32_t fine_rounds = 0;    // that are in
  Scales scales;
  Scales last;  // of the last chunk of floats

  // After a move: a result that a peer has kept brings none, and damage may have changed them.
  void forget_exponents() { agreed = steady = false; }
};

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
  // Memory of give_memory():
  std::byte* packet = nullptr;   // to send
  std::byte* flags = nullptr;    // the result of the round for flags
  std::byte* earlier = nullptr;  // exponents of elements, or upper words
  std::byte* finite = nullptr;   // elements without NaN and infinities; all slots share it

  std::byte* lanes() const { return packet + sap::kHeaderBytes; }
  std::span<const std::byte> contribution() const {
    return {packet, sap::kHeaderBytes + 4 * size_t{sent.lanes}};
  }
};

// For packets of so many lanes, in one piece, which must outlive the slots' use of it.
std::unique_ptr<std::byte[]> give_memory(std::span<Slot> slots, uint32_t lanes);

// The first rank that has accepted the result of `epoch` on this slot, by the epochs of all.
std::optional<uint32_t> rank_ahead(std::span<const uint32_t> epochs, uint32_t slots, uint32_t slot,
                                   uint32_t epoch);

}  // namespace slime
