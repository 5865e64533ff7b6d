#include "collnet/payload/payload.h"

#include <algorithm>
#include <cstring>

namespace slime {
namespace {

constexpr uint32_t kLaneStep = 8;  // a packet's lanes come in these: two blocks of equal size

sap::Format format_of_packets(Encoding encoding, DataType type, uint32_t workers,
                              number::HalfBits bits, uint32_t formats) {
  if (encoding != Encoding::kNative) return format_of_words(encoding, type);
  const sap::Format wanted = number::format_of(type, number::lane_width_of(type, workers, bits));
  return sap::has_format(formats, wanted) ? wanted : number::format_of(type);
}

}  // namespace

Payload::Payload(DataType type, ReduceOp op, uint32_t lanes, uint32_t workers,
                 number::HalfBits bits, uint32_t formats)
    : encoding_(encoding_of(type, op, formats)),
      bytes_(sap::has_format(formats, sap::Format::kU8)),
      full_{.type = type,
            .format = format_of_packets(encoding_, type, workers, bits, formats),
            .lanes = (sap::is_doubled(wire_op(op)) ? lanes / 2 : lanes) / kLaneStep * kLaneStep,
            .workers = workers},
      op_(op) {}

bool Payload::supports(DataType type, ReduceOp op) {
  return op == ReduceOp::kSum || !is_float(type);
}

uint32_t Payload::elements_per_packet() const {
  if (encoding_ != Encoding::kNative) return full_.lanes / words_per_element(encoding_);
  return static_cast<uint32_t>(number::packet_elements(full_));
}

number::Coding Payload::coding_for(uint32_t count) const {
  number::Coding coding = full_;
  coding.lanes = lanes_for(count);
  return coding;
}

// As many words as the elements need of a full packet's, rounded up to two blocks.
uint16_t Payload::lanes_for(uint32_t elements) const {
  const uint32_t per_packet = elements_per_packet();
  const uint64_t words = (uint64_t{elements} * full_.lanes + per_packet - 1) / per_packet;
  return static_cast<uint16_t>((words + kLaneStep - 1) / kLaneStep * kLaneStep);
}

// Exponents of the two halves of the packet as it will be sent, so of a short packet too.
Scales Payload::scales_of(const std::byte* elements, uint32_t count) const {
  Scales scales;
  if (!scaled() || count == 0) return scales;
  const size_t block = number::packet_elements(coding_for(count)) / 2;
  number::Block blocks[2];
  number::block_exponents(full_.type, elements, count, block, blocks);
  for (int i : {0, 1}) {
    scales.exponents[i] = blocks[i].exponent;
    scales.special |= blocks[i].special;
  }
  return scales;
}

uint32_t Payload::pack(const std::byte* elements, uint32_t count, const Scales& scales,
                       std::byte* lanes) const {
  if (encoding_ == Encoding::kNative) {
    return number::pack(coding_for(count), op_, scales.exponents, elements, count, lanes);
  }
  to_words(encoding_, full_.type, elements, count, lanes);
  clear_tail(lanes, count);
  return image_of(lanes, count);
}

void Payload::pack_half(const std::byte* elements, uint32_t count, const std::byte* upper,
                        std::byte* lanes) const {
  to_half_words(op_, elements, count, upper, lanes);
  clear_tail(lanes, count);
}

// What no element fills is zero: a packet carries nothing of the one before it.
void Payload::clear_tail(std::byte* lanes, uint32_t count) const {
  const size_t used = size_t{4} * count * words_per_element(encoding_);
  std::fill(lanes + used, lanes + size_t{4} * lanes_for(count), std::byte{0});
}

uint32_t Payload::image_of(const std::byte* lanes, uint32_t count) const {
  return number::check_image(full_.format, lanes, lanes_for(count));
}

void Payload::unpack(const std::byte* lanes, uint32_t count, const Scales& scales,
                     std::byte* elements) const {
  if (encoding_ != Encoding::kNative) return from_words(encoding_, lanes, count, elements);
  number::unpack(coding_for(count), scales.exponents, lanes, elements, count);
}

}  // namespace slime
