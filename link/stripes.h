// Cuts a message into stripes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "link/immediate.h"

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

struct StripeLimits {
  uint64_t least = 64 << 10;   // NCCL_SLIME_MIN_STRIPE: no stripe is shorter, unless it is alone
  uint64_t most = ~0ull;       // all rails take works of so many bytes
  uint64_t unhurried = ~0ull;  // takes no rail long; longer stripes are cut into more than usual
};

// Plans the stripes of a message. stripes == 0: it would need more than kMaxStripes.
constexpr StripePlan plan_stripes(uint64_t bytes, uint32_t rails, const StripeLimits& limits) {
  const auto divide_up = [](uint64_t a, uint64_t b) { return (a + b - 1) / b; };
  const bool one = (rails == 1 || bytes / 2 < limits.least) && bytes <= limits.most;
  if (one) return {1, bytes};  // saves the divisions for small messages
  uint64_t wanted = 1;
  if (rails > 1) {
    const uint64_t usual = uint64_t{rails} * kStripesPerRail;
    wanted = std::max(usual, divide_up(bytes, limits.unhurried));
    wanted = std::min({wanted, bytes / limits.least, uint64_t{kMaxStripes}});
    wanted = std::max<uint64_t>(wanted, 1);
  }
  uint64_t length = divide_up(divide_up(bytes, wanted), kLineBytes) * kLineBytes;
  const uint64_t largest = limits.most / kLineBytes * kLineBytes;
  if (length > largest) length = largest;
  if (length == 0) return {bytes == 0 ? 1u : 0u, 0};
  const uint64_t stripes = bytes == 0 ? 1 : divide_up(bytes, length);
  return {stripes > kMaxStripes ? 0 : static_cast<uint32_t>(stripes), length};
}

}  // namespace slime
