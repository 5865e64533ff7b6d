// What a completion belongs to: wr_id.
#pragma once

#include <bit>
#include <cstdint>

namespace slime::verbs {

struct WorkId {
  enum class Kind : uint8_t { kWorks, kReadBehind, kHello, kKeepAlive, kReceive, kClose };
  Kind kind = Kind::kWorks;
  uint8_t lane = 0;
  uint16_t place = 0;  // of the channel: Completions::place()
  // kWorks: of the newest work that is done with it. kReadBehind: all works before it are posted
  // before the read.
  uint32_t position = 0;

  uint64_t pack() const { return std::bit_cast<uint64_t>(*this); }
  static WorkId unpack(uint64_t bits) { return std::bit_cast<WorkId>(bits); }
};
static_assert(sizeof(WorkId) == sizeof(uint64_t));

}  // namespace slime::verbs
