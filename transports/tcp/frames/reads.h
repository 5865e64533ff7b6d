// The reads that a channel has posted, from the request until all bytes have come.
//
// States of a place: free; open, until kReadDone or kReadRefused. One thread; nothing is
// allocated after construction.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transports/rail.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

struct Read {
  std::byte* to = nullptr;
  uint64_t local_key = 0;
  uint64_t cookie = 0;
  uint32_t bytes = 0;
  uint32_t got = 0;
  bool refused = false;  // the local place is gone, or the peer's
};

class Reads {
 public:
  explicit Reads(uint32_t most)
      : most_(most), free_(most < kMaxReads ? (uint64_t{1} << most) - 1 : UINT64_MAX) {}
  size_t room() const { return static_cast<size_t>(std::popcount(free_)); }
  size_t outstanding() const { return most_ - room(); }
  // There must be room. Returns the request.
  FrameHeader begin(const Work& work) {
    const auto place = static_cast<uint32_t>(std::countr_zero(free_));
    free_ &= free_ - 1;
    // The user gave memory that it registered for this end to write into.
    reads_[place] = {const_cast<std::byte*>(work.local), work.local_key, work.cookie, work.length};
    FrameHeader request;
    request.type = static_cast<uint8_t>(FrameType::kRead);
    request.immediate = place;
    request.length = work.length;
    request.remote_address = work.length ? work.remote_address : 0;
    request.remote_key = work.length ? work.remote_key : 0;
    return request;
  }
  // The peer names a place. nullptr: nothing is read there.
  Read* find(uint32_t place) {
    return place < most_ && !(free_ >> place & 1) ? &reads_[place] : nullptr;
  }
  void end(uint32_t place) { free_ |= uint64_t{1} << place; }

 private:
  static_assert(kMaxReads == 64);
  const size_t most_;
  uint64_t free_;  // places, a bit each
  std::array<Read, kMaxReads> reads_;
};

}  // namespace slime::tcp
