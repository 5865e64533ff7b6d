// Packets in which every element has an exponent of its own. Rare, so simplicity counts: each
// element is packed as a packet of its own by the code that packs all others.

#include <algorithm>
#include <cstring>

#include "collnet/payload/payload.h"
#include "switch/protocol/check.h"

namespace slime {
namespace {

constexpr uint32_t kWords = 8;  // the least packet that there is
constexpr int kBias = 127;      // exponents travel as bytes from 0 on; 0 is that of zero

int8_t unbiased(std::byte exponent) {
  return static_cast<int8_t>(static_cast<int>(exponent) - kBias);
}

// How many powers of two the first number of a block may lie below the block's greatest one. Where
// the first has exponent m and the block x <= m + reach, the lanes' error (number.h) is at most
//
//     32 bits   n * 2^(c - 21) of 2^m
//     16 bits   n * 2^(c - 2) half ulps of 2^m: less than n * n / 2 of them, and so less than the
//               2 + 3 + ... + n that adding up in the type, one after the other, may be off by
int reach_of(const number::Coding& coding) {
  const bool narrow = coding.format == sap::Format::kI16;
  return narrow ? 13 - static_cast<int>(significand_bits(coding.type)) : 10;
}

// The first number other than zero, found in steps that double, and then back.
struct First {
  uint32_t at;
  int8_t exponent;
};
First first_of(DataType type, const std::byte* elements, uint32_t count) {
  const size_t size = element_bytes(type);
  number::Block found;
  bool passed = false;
  for (uint32_t at = 0, some = 1; at < count;) {
    some = std::min(some, count - at);
    number::block_exponents(type, elements + at * size, some, some, &found);
    const bool zeros = found.exponent == sap::kExponentOfZero;
    if (!zeros && some == 1) return {at, found.exponent};
    passed |= !zeros;
    if (zeros) at += some;
    some = passed ? std::max(some / 2, 1u) : 2 * some;
  }
  return {count, sap::kExponentOfZero};
}

// A packet of one element.
number::Coding of_one(number::Coding coding) {
  coding.lanes = kWords;
  return coding;
}

}  // namespace

// Of each block the first number other than zero counts. Far below the block's scale, it makes the
// block coarse. Near the scale, it anchors the block if it is the block's first element. A block
// that is scaled for zeros is anchored, too: all numbers in it are zeros at all contributors.
uint8_t Payload::coarseness(const std::byte* elements, uint32_t count, const Scales& scales) const {
  const size_t size = element_bytes(full_.type);
  const auto block = static_cast<uint32_t>(number::packet_elements(coding_for(count)) / 2);
  uint8_t said = 0;
  for (uint32_t index : {0u, 1u}) {
    const uint8_t anchored = index ? sap::special::kAnchored1 : sap::special::kAnchored0;
    const uint32_t begin = std::min(count, index * block), end = std::min(count, begin + block);
    const int8_t scale = scales.exponents[index];
    if (scale == sap::kExponentOfZero) said |= anchored;
    const First first = first_of(full_.type, elements + begin * size, end - begin);
    if (first.exponent == sap::kExponentOfZero) continue;
    if (first.exponent < scale - reach_of(full_)) {
      said |= sap::special::kCoarse;
    } else if (first.at == 0) {
      said |= anchored;
    }
  }
  return said;
}

// Exponents as bytes fit one packet. As words they do not: a maximum travels twice
// (sap::is_doubled), so a packet has room for half as many words as it has lanes.
uint32_t Payload::fine_rounds(uint32_t count) const {
  return bytes_ ? 1 : (2 * count + full_.lanes - 1) / full_.lanes;
}

Payload::Part Payload::fine_part(uint32_t count, uint32_t round) const {
  const uint32_t most = bytes_ ? count : full_.lanes / 2, first = round * most;
  return {first, std::min(count - first, most)};
}

uint16_t Payload::pack_fine_exponents(const std::byte* elements, uint32_t count, uint32_t round,
                                      std::byte* lanes) const {
  const size_t size = element_bytes(full_.type);
  const Part part = fine_part(count, round);
  const uint32_t words = bytes_ ? (part.count + 3) / 4 : part.count;
  std::fill_n(lanes, 4 * size_t{words}, std::byte{0});
  for (uint32_t i = 0; i < part.count; ++i) {
    number::Block block;
    number::block_exponents(full_.type, elements + (part.first + i) * size, 1, 1, &block);
    lanes[bytes_ ? i : 4 * i + 3] = static_cast<std::byte>(block.exponent + kBias);
  }
  return static_cast<uint16_t>(words);
}

void Payload::take_fine_exponents(const std::byte* lanes, uint32_t count, uint32_t round,
                                  std::byte* exponents) const {
  const Part part = fine_part(count, round);
  for (uint32_t i = 0; i < part.count; ++i) {
    exponents[part.first + i] = lanes[bytes_ ? i : 4 * i + 3];
  }
}

// Each element is packed as the only one of a packet with its exponent, and its number taken out of
// that packet.
uint32_t Payload::pack_fine(const std::byte* elements, uint32_t count, const std::byte* exponents,
                            std::byte* lanes) const {
  const size_t width = sap::width_of(full_.format) / 8;
  std::fill_n(lanes, 4 * size_t{lanes_for(count)}, std::byte{0});
  for (uint32_t i = 0; i < count; ++i) {
    const int8_t both[2] = {unbiased(exponents[i]), sap::kExponentOfZero};
    std::byte packet[4 * kWords];
    number::pack(of_one(full_), op_, both, elements + i * element_bytes(full_.type), 1, packet);
    std::memcpy(lanes + width * i, packet, width);
  }
  return image_of(lanes, count);
}

void Payload::unpack_fine(const std::byte* lanes, uint32_t count, const std::byte* exponents,
                          std::byte* elements) const {
  const size_t width = sap::width_of(full_.format) / 8;
  for (uint32_t i = 0; i < count; ++i) {
    const int8_t both[2] = {unbiased(exponents[i]), sap::kExponentOfZero};
    std::byte packet[4 * kWords] = {};
    std::memcpy(packet, lanes + width * i, width);
    number::unpack(of_one(full_), both, packet, elements + i * element_bytes(full_.type), 1);
  }
}

}  // namespace slime
