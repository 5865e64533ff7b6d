// How integers travel over a switch that does not add up the format of their type. Every switch
// adds up 32-bit numbers (sap::kWordFormats).
//
//     type, operation         its format     without it            words an element
//     8 bits, all             kI8, kU8       kWidened              1 instead of 1/4
//     64 bits, sum            kI64, kU64     kThreeWords           3 instead of 2
//     64 bits, min and max    kI64, kU64     kTwoRounds            1 in each of two rounds
//
//   kWidened      A word for each element, with its sign: format kI32, or kU32.
//   kThreeWords   Bits 0 to 15, 16 to 31, and 32 to 63, in this order, format kU32. A sum of 2^14
//                 contributors (number::kMaxWorkers) takes at most 30 bits of the first two words;
//                 the third may wrap: what it loses lies beyond bit 63.
//   kTwoRounds    First the upper words, signed if the type is. Then the lower ones, unsigned, of
//                 those contributors whose upper word was the result; the others contribute the
//                 number that changes nothing.
//
// All words are big-endian. Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collnet/number/number.h"
#include "switch/protocol/sap.h"

namespace slime {

enum class Encoding : uint8_t { kNative, kWidened, kThreeWords, kTwoRounds };

// `formats`: what the switch adds up, a bit each. Floats are always kNative.
Encoding encoding_of(DataType type, ReduceOp op, uint32_t formats);

// In the packet of each round, for encodings other than kNative.
constexpr uint32_t words_per_element(Encoding encoding) {
  return encoding == Encoding::kThreeWords ? 3 : 1;
}

// Of kTwoRounds, format_of_words is that of the second round.
sap::Format format_of_words(Encoding encoding, DataType type);
inline sap::Format format_of_upper(DataType type) {
  return type == DataType::kInt64 ? sap::Format::kI32 : sap::Format::kU32;
}

// kWidened and kThreeWords only.
void to_words(Encoding encoding, DataType type, const std::byte* elements, uint32_t count,
              std::byte* words);
void from_words(Encoding encoding, const std::byte* words, uint32_t count, std::byte* elements);

// kTwoRounds only. `upper`: the result of the first round; nullptr: this is the first.
void to_half_words(ReduceOp op, const std::byte* elements, uint32_t count, const std::byte* upper,
                   std::byte* words);
void from_two_rounds(const std::byte* upper, const std::byte* lower, uint32_t count,
                     std::byte* elements);

}  // namespace slime
