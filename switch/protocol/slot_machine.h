// The slot machine of SAP/2: what a switch does with a packet for a slot, and what a worker does
// with the answer. The functions are pure; their caller moves the payload. The software switch, the
// workers, the simulator and the model checker compile this file, and the P4 programs do the same
// in P4.
//
// A slot is stop-and-wait: all children contribute to round `epoch`, the switch answers with the
// result, and only then does a worker contribute to the next round. Round r uses half r & 1, so its
// result is overwritten by round r + 2 only. No worker contributes to that before all have the
// result of r: a worker that lost it can still ask.
//
//     half:   older  ──newer──▶ [ arrived ⊂ all ] ──last one──▶ [ arrived = all ] ──parent──▶ done
//                                                               (a root is done at once)
//
// kBits is the width of an epoch; less than 32 only where a test wants to see it wrap.
// Thread rules: a slot belongs to one thread.
#pragma once

#include <cstdint>

namespace slime::sap {

// How far round `to` is ahead of `from` on a circle of 2^kBits rounds; negative: it is behind.
template <unsigned kBits = 32>
constexpr int32_t rounds_ahead(uint32_t to, uint32_t from) {
  static_assert(kBits >= 2 && kBits <= 32);
  return static_cast<int32_t>((to - from) << (32 - kBits)) >> (32 - kBits);
}

struct Half {
  uint32_t epoch = 0;
  uint32_t arrived = 0;  // a bit per child; 0: fresh, no round of this generation was here yet
  bool done = false;     // inner switch: it holds the parent's result
};

inline constexpr uint32_t kFirstEpoch = 1;

template <unsigned kBits = 32>
constexpr uint32_t wrapped(uint32_t epoch) {
  return kBits == 32 ? epoch : epoch & ((1u << (kBits % 32)) - 1);
}

// Where a switch stands, for one job.
struct Role {
  uint32_t all = 0;  // a bit per child
  bool root = true;  // has no parent
};

enum class Event : uint8_t {
  kStale,      // of a round that is over: changes nothing
  kOpened,     // first of its round
  kFolded,     // one more of its round
  kDuplicate,  // folded before, and the round is not complete
  kRepeated,   // folded before, and the round is complete: an answer was lost
};

// What the switch sends. It does so after the payload has been stored or folded by the event.
enum class Send : uint8_t {
  kNothing,
  kResult,       // the half's values to all children
  kResultAgain,  // ... to the sender
  kPartial,      // ... to the parent
  kStatus,       // the half's `arrived` to the sender
};

struct Verdict {
  Event event = Event::kStale;
  Send send = Send::kNothing;
};

// A child's contribution. Validity of job, generation, source, slot and shape is settled before.
template <unsigned kBits = 32>
constexpr Verdict on_contribution(Half& half, uint32_t epoch, uint32_t child, const Role& role) {
  // A fresh half has no epoch to compare with. Workers keep their epochs when a generation begins,
  // so the first contribution opens its round, whatever its epoch.
  const bool fresh = half.arrived == 0;
  const int32_t ahead = fresh ? 1 : rounds_ahead<kBits>(epoch, half.epoch);
  // An older round is over at all children. If its packet opened the half, the result that workers
  // may still ask for would be lost.
  if (ahead < 0) return {};
  const uint32_t bit = 1u << child;
  const bool first = ahead > 0;
  if (first) half = {.epoch = epoch, .arrived = 0, .done = false};
  if (half.arrived & bit) {
    if (half.arrived != role.all) return {.event = Event::kDuplicate, .send = Send::kNothing};
    const bool answered = role.root || half.done;
    return {.event = Event::kRepeated, .send = answered ? Send::kResultAgain : Send::kPartial};
  }
  half.arrived |= bit;
  Verdict verdict{.event = first ? Event::kOpened : Event::kFolded, .send = Send::kNothing};
  if (half.arrived == role.all) verdict.send = role.root ? Send::kResult : Send::kPartial;
  return verdict;
}

// A child asks how far its round is. It gets the result, or the children that have contributed.
// Changes nothing.
template <unsigned kBits = 32>
constexpr Send on_query(const Half& half, uint32_t epoch, const Role& role) {
  const bool fresh = half.arrived == 0;
  const int32_t ahead = fresh ? 1 : rounds_ahead<kBits>(epoch, half.epoch);
  if (ahead < 0) return Send::kNothing;
  if (ahead > 0 || half.arrived != role.all) return Send::kStatus;
  return role.root || half.done ? Send::kResultAgain : Send::kPartial;
}

// Whose contributions to `epoch` have come, for the answer to a query.
constexpr uint32_t arrived_for(const Half& half, uint32_t epoch) {
  return half.epoch == epoch ? half.arrived : 0;
}

// At an inner switch. True: the payload replaces the half's values and goes to all children.
constexpr bool on_parent_result(Half& half, uint32_t epoch, const Role& role) {
  if (half.epoch != epoch || half.arrived != role.all || half.done) return false;
  half.done = true;
  return true;
}

// Worker.
// -------------------------------------------------------------------------------------------

// Which of its `rails` local addresses a contributor uses for a slot, and is answered at. Slot s is
// served by shard s mod `shards`, so every rail reaches every shard.
constexpr uint32_t rail_of(uint32_t slot, uint32_t shards, uint32_t rails) {
  return rails == 1 ? 0 : slot / shards % rails;
}

// Chunk c of the job's stream goes over slot c mod `slots`, the same on all workers for as long as
// the generation lasts. A window other than the ring of slots would let a worker run two rounds
// ahead of another, beyond what two halves can hold.
constexpr uint32_t slot_of(uint64_t chunk, uint32_t slots) {
  return static_cast<uint32_t>(chunk % slots);
}

// A result counts only for the round that the worker waits for. The next round may begin after
// that.
constexpr bool answers(uint32_t result_epoch, uint32_t waiting_epoch) {
  return result_epoch == waiting_epoch;
}

template <unsigned kBits = 32>
constexpr uint32_t next_epoch(uint32_t epoch) {
  return wrapped<kBits>(epoch + 1);
}

}  // namespace slime::sap
