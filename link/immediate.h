// The immediate of a work identifies it at the peer (WorkSlots does so at this end). Its two upper
// bits are 3 for a control work, the only kind that the link reads; the others are its user's.
//
//   control  3 | operation 4 | value 26
//
// Each work carries an immediate. An end counts completion from immediates and never infers it from
// the order of arrival (EFA's SRD delivers out of order).
#pragma once

#include <cstdint>

namespace slime {

inline constexpr uint32_t kMaxStripes = 64;  // of a transfer
inline constexpr uint32_t kControlValueMask = 0x3ffffff;

// The operations of the link; the numbers between them, and from 9 to 15, are its user's.
enum class ControlOp : uint32_t {
  kProbe = 0,        // warms the rail up, shows that it works; value 1: the peer must answer
  kFenceNotice = 2,  // value: a life of a rail (RailLife) that this end has fenced
  kJoin = 4,         // value: the next life of a dead rail; comes with a JoinRecord
  kJoined = 5,       // value: the life whose channel is connected at this end
  kRetry = 6,        // value: a rail that may work again; the active end tries it now
  kAnswer = 8,       // to a probe: the peer's process polls its rails
};

constexpr bool is_of_user(ControlOp op) {
  switch (op) {
    case ControlOp::kProbe:
    case ControlOp::kFenceNotice:
    case ControlOp::kJoin:
    case ControlOp::kJoined:
    case ControlOp::kRetry:
    case ControlOp::kAnswer:
      return false;
  }
  return true;
}
// An answer may be lost, and the user finds out in another way whether its operations arrived.
constexpr bool needs_no_confirmation(ControlOp op) {
  return is_of_user(op) || op == ControlOp::kAnswer;
}

constexpr bool is_control(uint32_t immediate) { return immediate >> 30 == 3; }
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
  static constexpr uint32_t kEpochMask = kControlValueMask >> (kRailBits + 1);

  uint32_t rail = 0;
  uint32_t epoch = 0;
  bool is_sound = false;  // of a kFenceNotice: its sender has ended the life of a rail that works

  constexpr uint32_t pack() const {
    return (epoch & kEpochMask) << (kRailBits + 1) | uint32_t{is_sound} << kRailBits | rail;
  }
  static constexpr RailLife unpack(uint32_t value) {
    return {value & ((1u << kRailBits) - 1), value >> (kRailBits + 1) & kEpochMask,
            (value >> kRailBits & 1) != 0};
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
