// The immediates of a sender's and a receiver's works; link/immediate.h has the layout of all.
#pragma once

#include <cstdint>

#include "link/immediate.h"

namespace slime {

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
