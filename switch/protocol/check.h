// The check of SAP/2: a sum that a switch adds up like a lane, and that only the sum of exactly the
// right contributions satisfies.
//
//     check = image(sum over s of weight(s) * x_s) + factor(rank) * salt    mod 2^32
//
// x_s is number s of the payload in the width b of its format. A switch adds numbers modulo 2^b and
// checks modulo 2^32, so `image` must be a homomorphism from the one to the other, and up to a
// factor there is only one:
//
//   b = 32      the weighted sum itself.
//   b = 16, 8   the weighted sum modulo 2^b, moved to the top bits of the word. Overflow within a
//               lane then leaves the word at its top, and the bits below still carry the salt.
//   b = 64      multiplication would keep the low word of every number and lose the high one, so
//               the image is the high word of the weighted sum instead. Each contributor cuts a low
//               word off, and the carries out of those are missing: anything from 0 to n-1.
//
// What is caught: one flipped bit, always (weights are odd; for 64 bits the tests try every bit).
// Any other damage is missed once in 2^32; 2^16 for 16-bit lanes, 2^8 for 8-bit lanes, n in 2^32
// for 64 bits. Two numbers that changed places are missed where the difference of the numbers times
// that of the weights, which is even, is 0 modulo 2^b: one pair of 8-bit numbers in 32, of 16-bit
// ones in 4500 (measured), otherwise hardly ever. Not a defence against people.
//
// Contributions that were not counted once: if the contribution of rank r is in the sum d(r) times
// too often (-1: it is missing), the check is wrong by salt * (sum over r of d(r) * factor(r)). The
// salt is odd, so this is 0 only if the sum is. The factor of rank r is (-3)^r. Below 64 bits the
// following is always caught:
//
//   - one contribution counted twice in place of another: powers of -3 differ up to the 2^30th;
//   - a number of contributions that is wrong, and not by a multiple of 4: factors are 1 modulo 4;
//   - up to 20 ranks: whatever was counted, if each contribution is in the sum 0 to 3 times. The
//     sum is 0 only if each d(r) is, as in numerals to the base -3, and 3^20 < 2^32;
//   - up to 32 ranks, as below one switch: any that are missing, any that are doubled, and up to 8
//     that are the one or the other (the tests try all);
//   - up to 1024 ranks: up to 4 that are missing or doubled (the tests try all);
//   - a leaf of a tree that is missing, doubled, or counted in place of another, where the ranks of
//     leaves are evenly spaced and equally many: their sums are powers of -3 times one number.
//
// Of other such faults one in 2^30 is missed, and that one in every round. With 64 bits all of the
// above are missed in 2n rounds of 2^32, no matter which.
//
// A minimum, a maximum and an or are not linear. Their check has no image, so it shows whether each
// contribution was reduced once, and their lanes travel twice: both copies come to the same result,
// so one damaged bit makes them differ. The same bit damaged in both is not seen.
//
// Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "switch/protocol/sap.h"

namespace slime::sap {

// Bits of a number. (A format that is not known counts as 32.)
constexpr uint32_t width_of(Format format) {
  switch (format) {
    case Format::kI8:
    case Format::kU8:
      return 8;
    case Format::kI16:
      return 16;
    case Format::kI64:
    case Format::kU64:
      return 64;
    default:
      return 32;
  }
}

// A bijection in which every bit of the argument changes half of the others. Constants: Wellons,
// "Prospecting for hash functions" (nullprogram.com, 2018), the one with two multiplications.
constexpr uint32_t mixed(uint32_t value) {
  value = (value ^ value >> 16) * 0x7feb352du;
  value = (value ^ value >> 15) * 0x846ca68bu;
  return value ^ value >> 16;
}

// Of number s, in memory order, in formats of 8, 16 and 32 bits; only the lowest bits count in the
// narrow ones. The step is 2^32 over the golden ratio: no two of the first 2^32 arguments are
// equal.
constexpr uint32_t weight(uint32_t s) { return mixed((s + 1) * 0x9e3779b9u) | 1; }

// Of number s in formats of 64 bits.
constexpr uint64_t weight64(uint32_t s) {
  return uint64_t{weight(2 * s)} << 32 | weight(2 * s + 1);
}

// Each field is mixed in by a bijection, so two headers that differ in one of them have different
// salts, save for the last bit: that one is set so that products with the salt are 0 only where the
// other factor is.
constexpr uint32_t salt(const Header& header) {
  uint32_t state = mixed(uint32_t{header.job} << 16 | header.slot);
  state = mixed(state ^ (header.generation + 0x51a9u));
  state = mixed(state ^ header.token);
  state = mixed(state ^ header.epoch);
  return mixed(state ^ header.cookie) | 1;
}

// By which the worker of this rank multiplies its salt. Odd, so that salts that differ still do.
// Takes `rank` steps: workers keep it.
inline constexpr uint32_t kFactorBase = 0u - 3;
constexpr uint32_t factor(uint32_t rank) {
  uint32_t power = 1;
  for (; rank > 0; --rank) power *= kFactorBase;
  return power;
}

// Whose contributions a sum must hold: how many workers, and the sum of their factors. These are
// all workers of the job, not the children of one switch.
struct Contributors {
  uint32_t count = 0;
  uint32_t factors = 0;
};
constexpr Contributors all_ranks(uint32_t count) {
  Contributors all{count, 0};
  for (uint32_t rank = 0; rank < count; ++rank) all.factors = all.factors * kFactorBase + 1;
  return all;
}

// Of format, operation, lanes, and whether there is no payload. Workers mix it into their cookies,
// which are part of the salt. So where workers disagree about the shape of a round, no check holds,
// even if the switch does not compare shapes.
constexpr uint32_t shape_digest(const Header& header) {
  constexpr uint32_t kNoDigestOfExponents = 1u << 31;  // those have 16 bits (stages.cc)
  return mixed(kNoDigestOfExponents | static_cast<uint32_t>(header.format) << 24 |
               static_cast<uint32_t>(header.op) << 20 |
               static_cast<uint32_t>(header.flags & flag::kExponentsOnly) << 16 | header.lanes);
}

// The weighted sum, which may be added up in any number of pieces, to 32 bits of check.
constexpr uint32_t image_of(Format format, uint64_t weighted) {
  const uint32_t width = width_of(format);
  if (width == 64) return static_cast<uint32_t>(weighted >> 32);
  return static_cast<uint32_t>(weighted) << (32 - width);
}

// Whether `check`, the sum of the contributors' checks, belongs to a sum with this image.
constexpr bool agrees(Format format, uint32_t image, uint32_t check, uint32_t salt,
                      const Contributors& all) {
  const uint32_t carries = image + all.factors * salt - check;
  return width_of(format) == 64 ? carries < all.count : carries == 0;
}

// Whether the lanes of a round travel twice.
constexpr bool is_doubled(Op op) { return op != Op::kSum; }

// Of the payload of a doubled round, as it travels.
constexpr std::span<const std::byte> first_copy(std::span<const std::byte> payload) {
  return payload.first(payload.size() / 2);
}
inline bool copies_agree(std::span<const std::byte> payload) {
  if (payload.empty()) return true;
  const size_t half = payload.size() / 2;
  return payload.size() % 8 == 0 && std::memcmp(payload.data(), payload.data() + half, half) == 0;
}

// Whether a result is what these contributions come to. `image` is that of the payload; of a
// doubled round, 0.
inline bool verifies(const Header& header, std::span<const std::byte> payload, uint32_t image,
                     const Contributors& all) {
  return (!is_doubled(header.op) || copies_agree(payload)) &&
         agrees(header.format, image, header.check, salt(header), all);
}

}  // namespace slime::sap
