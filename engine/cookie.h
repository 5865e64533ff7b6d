// What a work's completion is recognised by. The generation makes a completion that comes twice,
// or late, harmless.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/immediate.h"

namespace slime {

struct Cookie {
  enum class Kind : uint8_t { kStripe, kCts, kEager, kControl };
  Kind kind = Kind::kStripe;
  uint8_t part = 0;         // stripe; control operation; CTS, eager message: 1 if confirmed
  uint16_t index = 0;       // request, slot, or place of a control work
  uint32_t generation = 0;  // use of that index

  // Of a work that was not Work::unconfirmed.
  bool confirmed() const {
    switch (kind) {
      case Kind::kStripe:
        return true;
      case Kind::kCts:
      case Kind::kEager:
        return part != 0;
      case Kind::kControl:
        break;
    }
    return !needs_no_confirmation(static_cast<ControlOp>(part));
  }
  uint64_t pack() const { return std::bit_cast<uint64_t>(*this); }
  static Cookie unpack(uint64_t bits) { return std::bit_cast<Cookie>(bits); }
};
static_assert(sizeof(Cookie) == sizeof(uint64_t));

}  // namespace slime
