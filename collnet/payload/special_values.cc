// NaN and infinities, which no integer sum carries: where they are in a packet, as flags, and the
// same packet without them.
#include "collnet/payload/payload.h"

#include <algorithm>
#include <cstring>

namespace slime {
namespace {

// Where a float's bits have what.
struct FloatLayout {
  uint32_t infinity;  // exponent all ones, fraction zero
  uint32_t sign;
  uint32_t quiet_nan;
};
FloatLayout layout_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {0x7c00, 0x8000, 0x7e00};
    case DataType::kBfloat16:
      return {0x7f80, 0x8000, 0x7fc0};
    default:
      return {0x7f800000, 0x80000000, 0x7fc00000};
  }
}

uint32_t load(DataType type, const std::byte* element) {
  if (type == DataType::kFloat32) {
    uint32_t bits;
    std::memcpy(&bits, element, sizeof bits);
    return bits;
  }
  uint16_t bits;
  std::memcpy(&bits, element, sizeof bits);
  return bits;
}

void store(DataType type, std::byte* element, uint32_t bits) {
  const auto low = static_cast<uint16_t>(bits);
  if (type == DataType::kFloat32)
    std::memcpy(element, &bits, sizeof bits);
  else
    std::memcpy(element, &low, sizeof low);
}

// Which bit of sap::special a float is; 0: it is finite.
uint8_t class_of(const FloatLayout& layout, uint32_t bits) {
  const uint32_t magnitude = bits & ~layout.sign;
  if (magnitude < layout.infinity) return 0;
  if (magnitude > layout.infinity) return sap::special::kNan;
  return bits & layout.sign ? sap::special::kMinusInfinity : sap::special::kPlusInfinity;
}

}  // namespace

void pack_flags(DataType type, const std::byte* elements, uint32_t count, std::byte* lanes) {
  const FloatLayout layout = layout_of(type);
  const size_t size = element_bytes(type);
  std::fill_n(lanes, 4 * size_t{flag_lanes_for(count)}, std::byte{0});
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t flags = class_of(layout, load(type, elements + i * size));
    lanes[i / 2] |= static_cast<std::byte>(i % 2 ? flags << 4 : flags);
  }
}

void copy_finite(DataType type, const std::byte* elements, uint32_t count, std::byte* to) {
  const FloatLayout layout = layout_of(type);
  const size_t size = element_bytes(type);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t bits = load(type, elements + i * size);
    store(type, to + i * size, class_of(layout, bits) ? 0 : bits);
  }
}

// IEEE 754: a NaN, or infinities of both signs, make a NaN; an infinity stays.
void put_specials(DataType type, const std::byte* flags, uint32_t count, std::byte* elements) {
  const FloatLayout layout = layout_of(type);
  const size_t size = element_bytes(type);
  constexpr uint8_t kBoth = sap::special::kPlusInfinity | sap::special::kMinusInfinity;
  for (uint32_t i = 0; i < count; ++i) {
    const auto pair = static_cast<uint8_t>(flags[i / 2]);
    const uint8_t found = (i % 2 ? pair >> 4 : pair) & 15;
    if (found == 0) continue;
    uint32_t bits = layout.infinity;
    if (found == sap::special::kMinusInfinity) bits |= layout.sign;
    if ((found & sap::special::kNan) || (found & kBoth) == kBoth) bits = layout.quiet_nan;
    store(type, elements + i * size, bits);
  }
}

}  // namespace slime
