#include "collnet/payload/encoding.h"

#include <cstring>

namespace slime {
namespace {

using sap::wire::get32;
using sap::wire::put32;

uint64_t load64(const std::byte* element) {
  uint64_t value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

void store64(uint64_t value, std::byte* element) { std::memcpy(element, &value, sizeof value); }

uint32_t widened(DataType type, std::byte element) {
  const auto bits = static_cast<uint8_t>(element);
  return type == DataType::kInt8 ? static_cast<uint32_t>(int32_t{static_cast<int8_t>(bits)}) : bits;
}

bool travels_as_words(Encoding encoding) {
  return encoding == Encoding::kWidened || encoding == Encoding::kThreeWords;
}

}  // namespace

Encoding encoding_of(DataType type, ReduceOp op, uint32_t formats) {
  if (is_float(type) || sap::has_format(formats, number::format_of(type))) {
    return Encoding::kNative;
  }
  switch (element_bytes(type)) {
    case 1:
      return Encoding::kWidened;
    case 8:
      return op == ReduceOp::kSum ? Encoding::kThreeWords : Encoding::kTwoRounds;
    default:
      return Encoding::kNative;  // 32 bits: every switch has them
  }
}

sap::Format format_of_words(Encoding encoding, DataType type) {
  const bool is_signed = encoding == Encoding::kWidened && type == DataType::kInt8;
  return is_signed ? sap::Format::kI32 : sap::Format::kU32;
}

void to_words(Encoding encoding, DataType type, const std::byte* elements, uint32_t count,
              std::byte* words) {
  if (!travels_as_words(encoding)) return;
  for (uint32_t i = 0; i < count; ++i) {
    if (encoding == Encoding::kWidened) {
      put32(words + size_t{4} * i, widened(type, elements[i]));
      continue;
    }
    const uint64_t value = load64(elements + size_t{8} * i);
    std::byte* const three = words + size_t{12} * i;
    put32(three, static_cast<uint16_t>(value));
    put32(three + 4, static_cast<uint16_t>(value >> 16));
    put32(three + 8, static_cast<uint32_t>(value >> 32));
  }
}

void from_words(Encoding encoding, const std::byte* words, uint32_t count, std::byte* elements) {
  if (!travels_as_words(encoding)) return;
  for (uint32_t i = 0; i < count; ++i) {
    if (encoding == Encoding::kWidened) {
      elements[i] = static_cast<std::byte>(get32(words + size_t{4} * i));
      continue;
    }
    const std::byte* const three = words + size_t{12} * i;
    const uint64_t low = get32(three), middle = get32(three + 4), high = get32(three + 8);
    store64(low + (middle << 16) + (high << 32), elements + size_t{8} * i);
  }
}

void to_half_words(ReduceOp op, const std::byte* elements, uint32_t count, const std::byte* upper,
                   std::byte* words) {
  const uint32_t neutral = op == ReduceOp::kMin ? ~0u : 0;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = size_t{4} * i;
    const uint64_t value = load64(elements + size_t{8} * i);
    const auto high = static_cast<uint32_t>(value >> 32), low = static_cast<uint32_t>(value);
    put32(words + at, !upper ? high : high == get32(upper + at) ? low : neutral);
  }
}

void from_two_rounds(const std::byte* upper, const std::byte* lower, uint32_t count,
                     std::byte* elements) {
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = size_t{4} * i;
    store64(uint64_t{get32(upper + at)} << 32 | get32(lower + at), elements + size_t{8} * i);
  }
}

}  // namespace slime
