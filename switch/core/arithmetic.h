// What a switch does to payload. Numbers arrive in network byte order, are held in the machine's
// byte order while a round is open, and go back to network order when it is complete.
//
// Every variant gives the same bits: sums wrap, the rest is exact. Buffers may be unaligned.
#pragma once

#include "base/machine/simd.h"
#include "switch/protocol/sap.h"

namespace slime::net {

struct Arithmetic {
  const char* name;  // of the level
  // From `payload` to `values`, `words` 32-bit words.
  using Loop = void (*)(std::byte* values, const std::byte* payload, size_t words);
  // By format; nullptr: no such format. In place it leads back to network order.
  Loop load[8];
  Loop fold[8][4];  // by format and op
};

// The best that this processor runs.
const Arithmetic& arithmetic();

}  // namespace slime::net
