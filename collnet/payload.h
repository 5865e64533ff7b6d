// How the elements of an operation become the lanes of packets, and results become elements. Glue
// between the worker and collnet/number; no state.
#pragma once

#include <slime/sap_check.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "collnet/number/number.h"

namespace slime {

// What a contributor says of one packet's elements before it sends them.
struct Scales {
  int8_t exponents[2] = {sap::kExponentOfZero, sap::kExponentOfZero};
  uint8_t special = 0;
};
inline constexpr uint8_t kNotFinite =
    sap::special::kNan | sap::special::kPlusInfinity | sap::special::kMinusInfinity;

class Payload {
 public:
  Payload() = default;
  // `lanes`: 32-bit words of a full packet. `workers`: of the whole job. `bits`: of 16-bit floats.
  Payload(number::DataType type, sap::Op op, uint32_t lanes, uint32_t workers,
          number::HalfBits bits = number::HalfBits::k32);

  // False: no packet can carry it (the minimum of quantised numbers).
  static bool supports(number::DataType type, sap::Op op);

  sap::Format format() const { return full_.format; }
  sap::Op op() const { return op_; }
  uint32_t elements_per_packet() const;
  // Of one copy (sap::is_doubled). The last packet may be shorter.
  uint16_t lanes_for(uint32_t elements) const;
  bool scaled() const { return number::is_float(full_.type); }  // needs agreed exponents

  Scales scales_of(const std::byte* elements, uint32_t count) const;
  // The payload's part of the check.
  uint32_t pack(const std::byte* elements, uint32_t count, const Scales& scales,
                std::byte* lanes) const;
  uint32_t image_of(const std::byte* lanes, uint32_t count) const;
  void unpack(const std::byte* lanes, uint32_t count, const Scales& scales,
              std::byte* elements) const;

  // Whether numbers are lost beside much larger ones of the same block. NCCL hands over whole
  // chunks: behind the user's elements lies what an earlier operation left there, of any size. So a
  // block is coarse if what it begins with is far below what it is scaled for. It begins near its
  // scale, is anchored, if its first element does at one contributor; or else if the first other
  // than zero does at all of them. What this contributor says of that, as bits of sap::special:
  uint8_t coarseness(const std::byte* elements, uint32_t count, const Scales& scales) const;
  // What all of them say.
  static bool is_coarse(uint8_t special) {
    constexpr uint8_t kAnchored = sap::special::kAnchored0 | sap::special::kAnchored1;
    return (special & sap::special::kCoarse) && (special & kAnchored) != kAnchored;
  }
  // Then every element gets an exponent of its own: a byte each, max-reduced in a round of its own.
  static uint16_t fine_lanes_for(uint32_t elements) {
    return static_cast<uint16_t>((elements + 3) / 4);
  }
  void pack_fine_exponents(const std::byte* elements, uint32_t count, std::byte* lanes) const;
  uint32_t pack_fine(const std::byte* elements, uint32_t count, const std::byte* exponents,
                     std::byte* lanes) const;
  void unpack_fine(const std::byte* lanes, uint32_t count, const std::byte* exponents,
                   std::byte* elements) const;

  // Where NaN and infinities are, 4 bits an element, to be OR-reduced in a round of their own.
  static uint16_t flag_lanes_for(uint32_t elements) {
    return static_cast<uint16_t>((elements + 7) / 8);
  }
  // Of floats, in a packet of `lanes` words.
  static constexpr uint32_t most_floats(uint32_t lanes) { return 2 * lanes; }
  void pack_flags(const std::byte* elements, uint32_t count, std::byte* lanes) const;
  // `data` of a packet with NaN and infinities: these as 0, so that they can be packed.
  void copy_finite(const std::byte* elements, uint32_t count, std::byte* to) const;
  void put_specials(const std::byte* flags, uint32_t count, std::byte* elements) const;

 private:
  number::Coding coding_for(uint32_t count) const;
  int reach() const;
  struct First {
    uint32_t at;
    int8_t exponent;
  };
  First first_of(const std::byte* elements, uint32_t count) const;  // number other than zero

  number::Coding full_;
  sap::Op op_ = sap::Op::kSum;
};

}  // namespace slime
