// The check of SAP/2 as its definition says it, slowly: workers compute it while they convert
// numbers (collnet/number), and tests compare with this.
#pragma once

#include <bit>

#include "switch/protocol/check.h"

namespace slime::sap {

// Modulo 2^width. word(j) is word j of the payload in host order.
template <typename Words>
constexpr uint64_t weighted_sum(Format format, uint32_t lanes, Words word) {
  const uint32_t width = width_of(format);
  uint64_t sum = 0;
  if (width == 64) {
    for (uint32_t s = 0; 2 * s + 1 < lanes; ++s) {
      sum += weight64(s) * (uint64_t{word(2 * s)} << 32 | word(2 * s + 1));
    }
    return sum;
  }
  const uint32_t numbers = 32 / width;  // in a word
  for (uint32_t j = 0; j < lanes; ++j) {
    // The first number in memory is the highest part of a big-endian word.
    const auto rotated = [&](uint32_t s) {
      return std::rotl(word(j), static_cast<int>((s + 1) * width));
    };
    for (uint32_t s = 0; s < numbers; ++s) sum += uint64_t{weight(j * numbers + s)} * rotated(s);
  }
  return width == 32 ? sum & 0xffff'ffffu : sum & ((1u << width) - 1);
}

constexpr uint32_t check_of(Format format, std::span<const uint32_t> words, uint32_t salt) {
  const auto word = [words](uint32_t j) { return words[j]; };
  const auto lanes = static_cast<uint32_t>(words.size());
  return image_of(format, weighted_sum(format, lanes, word)) + salt;
}

// Of a payload as it travels: big-endian words.
constexpr uint32_t check_of(Format format, std::span<const std::byte> payload, uint32_t salt) {
  const auto word = [payload](uint32_t j) { return wire::get32(payload.data() + 4 * size_t{j}); };
  const auto lanes = static_cast<uint32_t>(payload.size() / 4);
  return image_of(format, weighted_sum(format, lanes, word)) + salt;
}

constexpr bool verifies(Format format, std::span<const uint32_t> words, uint32_t check,
                        uint32_t salt, const Contributors& all) {
  return agrees(format, check_of(format, words, 0), check, salt, all);
}
constexpr bool verifies(Format format, std::span<const std::byte> payload, uint32_t check,
                        uint32_t salt, const Contributors& all) {
  return agrees(format, check_of(format, payload, 0), check, salt, all);
}

// Of a contribution of this rank, whose copies are there already.
constexpr uint32_t check_of(const Header& header, std::span<const std::byte> payload,
                            uint32_t rank) {
  const uint32_t own = factor(rank) * salt(header);
  return is_doubled(header.op) ? own : check_of(header.format, payload, own);
}

inline bool verifies(const Header& header, std::span<const std::byte> payload,
                     const Contributors& all) {
  const uint32_t image = is_doubled(header.op) ? 0 : check_of(header.format, payload, 0);
  return verifies(header, payload, image, all);
}

}  // namespace slime::sap
