// How the elements of an operation become the lanes of packets, and results become elements. Glue
// between the worker and collnet/number.
//
// Thread rules: values without mutable state; all functions are const, and write only to what they
// are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collnet/number/number.h"
#include "collnet/payload/encoding.h"
#include "switch/protocol/check.h"

namespace slime {

// What a contributor announces about one packet's elements, a round before it sends them.
struct Scales {
  int8_t exponents[2] = {sap::kExponentOfZero, sap::kExponentOfZero};
  uint8_t special = 0;
};

class Payload {
 public:
  Payload() = default;
  // `lanes`: 32-bit words of a full packet. `workers`: of the whole job. `bits`: of 16-bit floats.
  // `formats`: what all switches of the job add up, sap::kWordFormats at least.
  Payload(DataType type, ReduceOp op, uint32_t lanes, uint32_t workers,
          number::HalfBits bits = number::HalfBits::k32, uint32_t formats = sap::kKnownFormats);

  // False: no packet can carry it (the minimum of quantised numbers).
  static bool supports(DataType type, ReduceOp op);

  sap::Format format() const { return full_.format; }
  sap::Op op() const { return wire_op(op_); }
  DataType type() const { return full_.type; }
  uint32_t elements_per_packet() const;
  // Of one copy (sap::is_doubled). The last packet may be shorter.
  uint16_t lanes_for(uint32_t elements) const;
  bool scaled() const { return is_float(full_.type); }  // needs agreed exponents
  bool in_two_rounds() const { return encoding_ == Encoding::kTwoRounds; }

  Scales scales_of(const std::byte* elements, uint32_t count) const;
  // Answers the payload's part of the check. Must not be called for payloads in two rounds.
  uint32_t pack(const std::byte* elements, uint32_t count, const Scales& scales,
                std::byte* lanes) const;
  uint32_t image_of(const std::byte* lanes, uint32_t count) const;
  void unpack(const std::byte* lanes, uint32_t count, const Scales& scales,
              std::byte* elements) const;

  // In two rounds (encoding.h) of equally many lanes. `upper`: the result of the first; nullptr:
  // this is the first.
  void pack_half(const std::byte* elements, uint32_t count, const std::byte* upper,
                 std::byte* lanes) const;

  // Whether numbers are lost beside much larger ones of the same block. NCCL hands over whole
  // chunks: behind the user's elements lies what an earlier operation left there, of any size. So a
  // block is coarse if what it begins with is far below what it is scaled for. It begins near its
  // scale, is anchored, if its first element does at one contributor; or else if the first other
  // than zero does at all of them. The bits of sap::special that this contributor sets for that:
  uint8_t coarseness(const std::byte* elements, uint32_t count, const Scales& scales) const;
  // Then (is_coarse()) every element gets an exponent of its own, max-reduced in one round, or,
  // where bytes travel as words, in several. The results are put together in `exponents`, a byte
  // for each element.
  uint32_t fine_rounds(uint32_t count) const;
  sap::Format fine_format() const { return bytes_ ? sap::Format::kU8 : sap::Format::kU32; }
  // Answers how many lanes that takes.
  uint16_t pack_fine_exponents(const std::byte* elements, uint32_t count, uint32_t round,
                               std::byte* lanes) const;
  void take_fine_exponents(const std::byte* lanes, uint32_t count, uint32_t round,
                           std::byte* exponents) const;
  uint32_t pack_fine(const std::byte* elements, uint32_t count, const std::byte* exponents,
                     std::byte* lanes) const;
  void unpack_fine(const std::byte* lanes, uint32_t count, const std::byte* exponents,
                   std::byte* elements) const;

 private:
  number::Coding coding_for(uint32_t count) const;
  void clear_tail(std::byte* lanes, uint32_t count) const;
  struct Part {  // of the elements of a packet
    uint32_t first, count;
  };
  Part fine_part(uint32_t count, uint32_t round) const;

  Encoding encoding_ = Encoding::kNative;
  bool bytes_ = true;    // the switch adds up 8-bit numbers
  number::Coding full_;  // its format is the one that travels
  ReduceOp op_ = ReduceOp::kSum;
};

// By the OR of these bits over all contributors (Payload::coarseness()).
constexpr bool is_coarse(uint8_t special) {
  constexpr uint8_t kAnchored = sap::special::kAnchored0 | sap::special::kAnchored1;
  return (special & sap::special::kCoarse) && (special & kAnchored) != kAnchored;
}

// NaN and infinities of a packet (special_values.cc): where they are, 4 bits an element
// (sap::special), to be OR-reduced in a round of their own.
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
