// The immediate of a work identifies it at the peer (WorkSlots does so at this end).
//
// Each work carries an immediate. An end counts completion from immediates and never infers it from
// the order of arrival (EFA's SRD delivers out of order). The fields, with their bits:
//
//   data     0 | entry 6 | sub 3 | stripe 6 | stripes-1 6 | generation 9
//   cts      1 | entry 6 | sequence 24
//   eager    2 | index 30
//   control  3 | operation 4 | value 26
#pragma once

#include <cstdint>

namespace slime {

inline constexpr uint32_t kMaxStripes = 64;  // per message: 6 bits
inline constexpr uint32_t kControlValueMask = 0x3ffffff;

enum class ImmediateKind : uint32_t { kData = 0, kCts = 1, kEager = 2, kControl = 3 };

enum class ControlOp : uint32_t {
  kProbe = 0,        // warms the rail up, shows that it works; value 1: the peer must answer
  kCredit = 1,       // value: eager messages consumed so far
  kFenceNotice = 2,  // value: a life of a rail (RailLife) that this end has fenced
  kSeen = 3,         // value: number of CTS that the sender has read so far
  kJoin = 4,         // value: the next life of a dead rail; comes with a JoinRecord
  kJoined = 5,       // value: the life whose channel is connected at this end
  kRetry = 6,        // value: a rail that may work again; the active end tries it now
  kWanted = 7,       // value: the sequence of the CTS that the sender waits for
  kAnswer = 8,       // to a probe: the peer's process polls its rails
  kTooLong = 9,      // an eager message is too long for its receive; value: Refusal
};

// kCredit and kSeen are sent again when their rail dies; kWanted, kAnswer and kTooLong may be lost.
constexpr bool needs_no_confirmation(ControlOp op) {
  return op == ControlOp::kCredit || op == ControlOp::kSeen || op == ControlOp::kWanted ||
         op == ControlOp::kAnswer || op == ControlOp::kTooLong;
}

constexpr ImmediateKind kind_of(uint32_t immediate) {
  return static_cast<ImmediateKind>(immediate >> 30);
}

constexpr uint32_t control_immediate(ControlOp op, uint32_t value) {
  return 3u << 30 | static_cast<uint32_t>(op) << 26 | (value & kControlValueMask);
}
constexpr ControlOp control_op(uint32_t immediate) {
  return static_cast<ControlOp>(immediate >> 26 & 15);
}
constexpr uint32_t control_value(uint32_t immediate) { return immediate & kControlValueMask; }

// The life of a rail that a control work is about. A rail that returns to its link gets a new
// epoch, so that an end can ignore control works about an earlier life.
struct RailLife {
  static constexpr uint32_t kRailBits = 5;
  static constexpr uint32_t kEpochMask = kControlValueMask >> kRailBits;

  uint32_t rail = 0;
  uint32_t epoch = 0;

  constexpr uint32_t pack() const { return (epoch & kEpochMask) << kRailBits | rail; }
  static constexpr RailLife unpack(uint32_t value) {
    return {value & ((1u << kRailBits) - 1), value >> kRailBits & kEpochMask};
  }
  static constexpr uint32_t next(uint32_t epoch) { return (epoch + 1) & kEpochMask; }
};

// Counters travel with fewer bits than they have. Returns the value nearest to `known` with these
// low bits.
constexpr uint32_t widen(uint32_t known, uint32_t low_bits, uint32_t mask) {
  const uint32_t delta = (low_bits - known) & mask;
  const bool behind = delta > mask / 2;
  return behind ? known - ((known - low_bits) & mask) : known + delta;
}

}  // namespace slime
