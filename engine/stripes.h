// How a message is cut over rails.
#pragma once

#include <cstdint>

#include "engine/immediate.h"

namespace slime {

// LL128 needs every 128-byte line to arrive as a whole, so cuts lie at multiples of 128 bytes
// (NCCL's net_ib keeps the same rule for several queue pairs).
inline constexpr uint64_t kLineBytes = 128;

struct StripePlan {
  uint32_t stripes = 1;
  uint64_t stripe_bytes = 0;  // of every stripe but the last

  uint64_t offset(uint32_t stripe) const { return stripe * stripe_bytes; }
  uint64_t length(uint32_t stripe, uint64_t bytes) const {
    return stripe + 1 < stripes ? stripe_bytes : bytes - offset(stripe);
  }
};

// A link of several rails gets several stripes a rail, so that each can take its share; a link of
// one needs no more than one.
inline constexpr uint32_t kStripesPerRail = 4;

// At most kStripesPerRail for each of several rails, none under min_stripe, unless the message is
// larger than the rails take in one work: then as many as that needs. stripes == 0: more than
// kMaxStripes needed.
constexpr StripePlan plan_stripes(uint64_t bytes, uint32_t rails, uint64_t min_stripe,
                                  uint64_t max_work) {
  const auto divide_up = [](uint64_t a, uint64_t b) { return (a + b - 1) / b; };
  const uint64_t most = rails > 1 ? uint64_t{rails} * kStripesPerRail : 1;
  uint64_t wanted = bytes / (min_stripe ? min_stripe : 1);
  if (wanted > most) wanted = most;
  if (wanted < 1) wanted = 1;
  uint64_t length = divide_up(divide_up(bytes, wanted), kLineBytes) * kLineBytes;
  const uint64_t largest = max_work / kLineBytes * kLineBytes;
  if (length > largest) length = largest;
  if (length == 0) return {bytes == 0 ? 1u : 0u, 0};
  const uint64_t stripes = bytes == 0 ? 1 : divide_up(bytes, length);
  return {stripes > kMaxStripes ? 0 : static_cast<uint32_t>(stripes), length};
}

}  // namespace slime
