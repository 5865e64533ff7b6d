// The immediates of a sender's and a receiver's works, with the bits of their fields.
// link/immediate.h has those of the link's own works.
//
//   data     0 | entry 6 | sub 3 | stripe 6 | stripes-1 6 | generation 9
//   cts      1 | entry 6 | sequence 24
//   eager    2 | index 30
//   control  3 | operation 4 | value 26
#pragma once

#include <cstdint>

#include "link/immediate.h"

namespace slime {

enum class ImmediateKind : uint32_t { kData = 0, kCts = 1, kEager = 2, kControl = 3 };

constexpr ImmediateKind kind_of(uint32_t immediate) {
  return static_cast<ImmediateKind>(immediate >> 30);
}

// Operations of control works. kCredit and kSeen are sent again when their rail dies; the others
// may be lost.
namespace message_op {
inline constexpr ControlOp kCredit{1};   // value: eager messages consumed so far
inline constexpr ControlOp kSeen{3};     // value: number of CTS that the sender has read so far
inline constexpr ControlOp kWanted{7};   // value: the sequence of the CTS that the sender waits for
inline constexpr ControlOp kTooLong{9};  // an eager message is too long for its receive; Refusal
static_assert(is_of_user(kCredit) && is_of_user(kSeen) && is_of_user(kWanted) &&
              is_of_user(kTooLong));
}  // namespace message_op

inline constexpr uint32_t kEntryMask = 0x3f;         // receive entries: 6 bits
inline constexpr uint32_t kGenerationMask = 0x1ff;   // of a receive request: 9 bits
inline constexpr uint32_t kSequenceMask = 0xffffff;  // of a CTS: 24 bits
inline constexpr uint32_t kEagerIndexMask = 0x3fffffff;

struct DataImmediate {
  uint32_t entry = 0;       // receive request
  uint32_t sub = 0;         // receive within the group
  uint32_t stripe = 0;      // which part of the message
  uint32_t stripes = 1;     // how many parts
  uint32_t generation = 0;  // use of that request; identifies a late stripe of an earlier use

  static constexpr uint32_t kNextStripe = 1 << 15;  // from one stripe's immediate to the next

  constexpr uint32_t pack() const {
    return entry << 24 | sub << 21 | stripe * kNextStripe | (stripes - 1) << 9 | generation;
  }
  static constexpr DataImmediate unpack(uint32_t bits) {
    return {bits >> 24 & kEntryMask, bits >> 21 & 7, bits >> 15 & 63, (bits >> 9 & 63) + 1,
            bits & kGenerationMask};
  }
};

constexpr uint32_t cts_immediate(uint32_t entry, uint32_t sequence) {
  return 1u << 30 | entry << 24 | (sequence & kSequenceMask);
}
constexpr uint32_t cts_entry_of(uint32_t immediate) { return immediate >> 24 & kEntryMask; }

constexpr uint32_t eager_immediate(uint32_t index) { return 2u << 30 | (index & kEagerIndexMask); }

}  // namespace slime
