// What a switch does to payload: numbers come in network order, are held in the machine's while a
// round is open, and go back to network order when it is complete.
//
// Every variant gives the same bits: sums wrap, the rest is exact. Buffers may be unaligned.
#pragma once

#include "base/machine/simd.h"
#include "switch/protocol/sap.h"

namespace slime::net {

struct Arithmetic {
  const char* name;  // of the level
  // `words` 32-bit words.
  using Load = void (*)(std::byte* values, const std::byte* payload, size_t words);
  using Fold = void (*)(std::byte* values, const std::byte* payload, size_t words);
  using Seal = void (*)(std::byte* values, size_t words);
  Load load[8];     // by format; nullptr: no such format
  Fold fold[8][4];  // by format and op
  Seal seal[8];
};

// For the choice, and for tests.
const SimdTables<Arithmetic>& arithmetic_levels();

// The best that this processor runs.
const Arithmetic& arithmetic();

}  // namespace slime::net
