#include "switch/core/slots.h"

#include <cstring>
#include <new>

namespace slime::net {

Slots::Slots(uint32_t slots, uint32_t max_lanes)
    : slots_(slots), stride_(kHalfBytes + stride_of(max_lanes)) {
  if (slots == 0) return;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes_for(slots, max_lanes))));
  if (!memory_) return;
  std::memset(memory_.get(), 0, bytes_for(slots, max_lanes));
  clear();
}

void Slots::clear() {
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    for (uint32_t index = 0; index < 2; ++index) new (at(slot, index)) SlotHalf;
  }
}

}  // namespace slime::net
