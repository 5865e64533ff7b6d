// NaN and infinities of a packet: where they are, 4 bits an element (sap::special), to be
// OR-reduced in a round of their own.
//
// Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collnet/number/number.h"

namespace slime {

inline constexpr uint8_t kNotFinite =
    sap::special::kNan | sap::special::kPlusInfinity | sap::special::kMinusInfinity;

constexpr uint16_t flag_lanes_for(uint32_t elements) {
  return static_cast<uint16_t>((elements + 7) / 8);
}
// Of floats, in a packet of `lanes` words.
constexpr uint32_t most_floats(uint32_t lanes) { return 2 * lanes; }

void pack_flags(DataType type, const std::byte* elements, uint32_t count, std::byte* lanes);
// The elements with zeros for NaN and infinities, so that they can be packed.
void copy_finite(DataType type, const std::byte* elements, uint32_t count, std::byte* to);
// Into the sum of these. `flags`: the result of the round.
void put_specials(DataType type, const std::byte* flags, uint32_t count, std::byte* elements);

}  // namespace slime
