// The slots of one job in one shard: two halves each, and the numbers in them.
//
// States: empty(), or with memory. Invariant: a half and its numbers never move.
// Thread rules: one thread, the shard's. Another thread may make the object before the shard has
// it, and destroy it afterwards.
//
// Memory: slots * 2 * (64 + 4 * max_lanes rounded up to 64) bytes, taken once, zeroed.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "switch/protocol/sap.h"
#include "switch/protocol/slot_machine.h"

namespace slime::net {

// All contributions to one round have the same shape.
struct Shape {
  sap::Format format = sap::Format::kI32;
  sap::Op op = sap::Op::kSum;
  bool exponents_only = false;
  uint16_t lanes = 0;
  bool operator==(const Shape&) const = default;
};

inline Shape shape_of(const sap::Header& header) {
  return {header.format, header.op, (header.flags & sap::flag::kExponentsOnly) != 0, header.lanes};
}

// Fields of the header that are reduced (exponents, special, check), and fields of a contribution
// that the result repeats (flags, cookie).
struct Scalars {
  int8_t exponents[2] = {sap::kExponentOfZero, sap::kExponentOfZero};
  uint8_t special = 0;
  uint8_t flags = 0;
  uint32_t check = 0;
  uint32_t cookie = 0;
};

inline Scalars scalars_of(const sap::Header& header) {
  return {.exponents = {header.exponents[0], header.exponents[1]},
          .special = header.special,
          .flags = header.flags,
          .check = header.check,
          .cookie = header.cookie};
}

struct SlotHalf {
  sap::Half half;
  Shape shape;
  Scalars scalars;
};

class Slots {
 public:
  static constexpr size_t kHalfBytes = 64;
  static size_t bytes_for(uint32_t slots, uint32_t max_lanes) {
    return size_t{slots} * 2 * (kHalfBytes + stride_of(max_lanes));
  }

  Slots() = default;
  // If there is not enough memory, the object is empty().
  Slots(uint32_t slots, uint32_t max_lanes)
      : slots_(slots), stride_(kHalfBytes + stride_of(max_lanes)) {
    if (slots == 0) return;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes_for(slots, max_lanes))));
    if (!memory_) return;
    std::memset(memory_.get(), 0, bytes_for(slots, max_lanes));
    clear();
  }
  bool empty() const { return !memory_; }
  // A generation begins: every half is fresh. The numbers in it need no clearing, since the first
  // contribution to a round replaces them.
  void clear() {
    for (uint32_t slot = 0; slot < slots_; ++slot) {
      for (uint32_t index = 0; index < 2; ++index) new (at(slot, index)) SlotHalf;
    }
  }

  SlotHalf& half(uint32_t slot, uint32_t epoch) {
    return *reinterpret_cast<SlotHalf*>(at(slot, epoch));
  }
  std::byte* values(uint32_t slot, uint32_t epoch) { return at(slot, epoch) + kHalfBytes; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static size_t stride_of(uint32_t lanes) { return (4 * size_t{lanes} + 63) / 64 * 64; }
  std::byte* at(uint32_t slot, uint32_t epoch) {
    return memory_.get() + (2 * size_t{slot} + (epoch & 1)) * stride_;
  }

  uint32_t slots_ = 0;
  size_t stride_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
};
static_assert(sizeof(SlotHalf) <= Slots::kHalfBytes);

}  // namespace slime::net
