// Packets in which every element has an exponent of its own. Rare, so simplicity counts: each
// element is packed as a packet of its own by the code that packs all others.
#include <algorithm>
#include <cstring>

#include "collnet/payload.h"

namespace slime {
namespace {

// Powers of two that the beginning of a block may lie below its greatest number. The error of what
// comes there is then at most 2^(ceil(log2 n) - 20) of it.
constexpr int kCoarse = 10;

constexpr uint32_t kWords = 8;  // the least packet that there is
constexpr int kBias = 127;      // exponents travel as bytes from 0: no value but zero

}  // namespace

bool Payload::is_coarse(const std::byte* elements, uint32_t count, const Scales& scales) const {
  const size_t size = number::element_bytes(full_.type);
  const uint32_t block = static_cast<uint32_t>(number::packet_elements(coding_for(count)) / 2);
  for (uint32_t index : {0u, 1u}) {
    const uint32_t first = index * block, end = std::min(count, first + block);
    // The first 1, 2, 4, ... elements, until there is a number other than zero.
    number::Block found;
    for (uint32_t at = first, some = 1; at < end && found.exponent == sap::kExponentOfZero;
         at += some, some = std::min(at - first, end - at)) {
      number::block_exponents(full_.type, elements + at * size, some, some, &found);
    }
    if (found.exponent != sap::kExponentOfZero &&
        found.exponent < scales.exponents[index] - kCoarse) {
      return true;
    }
  }
  return false;
}

void Payload::pack_fine_exponents(const std::byte* elements, uint32_t count,
                                  std::byte* lanes) const {
  const size_t size = number::element_bytes(full_.type);
  std::fill_n(lanes, 4 * size_t{fine_lanes_for(count)}, std::byte{0});
  for (uint32_t i = 0; i < count; ++i) {
    number::Block block;
    number::block_exponents(full_.type, elements + i * size, 1, 1, &block);
    lanes[i] = static_cast<std::byte>(block.exponent + kBias);
  }
}

uint32_t Payload::pack_fine(const std::byte* elements, uint32_t count, const std::byte* exponents,
                            std::byte* lanes) const {
  const size_t size = number::element_bytes(full_.type);
  number::Coding one = full_;
  one.lanes = kWords;
  std::fill_n(lanes, 4 * size_t{lanes_for(count)}, std::byte{0});
  for (uint32_t i = 0; i < count; ++i) {
    const auto exponent = static_cast<int8_t>(static_cast<int>(exponents[i]) - kBias);
    const int8_t both[2] = {exponent, sap::kExponentOfZero};
    std::byte packet[4 * kWords];
    number::pack(one, op_, both, elements + i * size, 1, packet);
    std::memcpy(lanes + 4 * size_t{i}, packet, 4);
  }
  return image_of(lanes, count);
}

void Payload::unpack_fine(const std::byte* lanes, uint32_t count, const std::byte* exponents,
                          std::byte* elements) const {
  const size_t size = number::element_bytes(full_.type);
  number::Coding one = full_;
  one.lanes = kWords;
  for (uint32_t i = 0; i < count; ++i) {
    const auto exponent = static_cast<int8_t>(static_cast<int>(exponents[i]) - kBias);
    const int8_t both[2] = {exponent, sap::kExponentOfZero};
    std::byte packet[4 * kWords] = {};
    std::memcpy(packet, lanes + 4 * size_t{i}, 4);
    number::unpack(one, both, packet, elements + i * size, 1);
  }
}

}  // namespace slime
