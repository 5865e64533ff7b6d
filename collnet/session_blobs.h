// What the members of a session tell each other in a Ring's gathers.
#pragma once

#include "collnet/session.h"

namespace slime {

struct Session::Member {
  SocketAddress::Wire address;
  uint32_t lanes = 0;
  uint32_t well = 0;
  uint32_t half_bits = 0;
  uint32_t reserved = 0;
  uint64_t advice = 0;  // digest of what a tuner tells NCCL
};
struct Session::Grant {
  enum class From : uint32_t { kNobody, kSwitch, kRanks };
  SocketAddress::Wire address;
  From from = From::kNobody;
  uint32_t shards = 1, slots = 0, lanes = 0;
  uint16_t job = 0;
  uint8_t generation = 0;
  uint8_t reserved = 0;
};

}  // namespace slime
