// Headers that came before their payloads (FrameType::kList), at their receiver.
//
// States: empty; filling, until all headers have come, which are of silent writes with a payload;
// then frames are taken from it, until it is empty. Some bytes of those that follow the open frame
// may be in their places before it is complete. One thread. Memory: 2 KiB from the first list on;
// NCCL's channels have none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

class FrameList {
 public:
  // It is empty. False: no list has so many frames or bytes.
  bool begin(uint32_t count, uint32_t bytes) {
    SLIME_CHECK(empty() && ahead_ == 0);
    if (count == 0 || count > kMostListed || bytes > kMaxListBytes) return false;
    if (headers_ == nullptr) headers_ = std::make_unique<Headers>();
    next_ = got_ = 0;
    count_ = count;
    bytes_ = missing_ = bytes;
    return true;
  }
  bool empty() const { return next_ == count_; }
  bool filling() const { return got_ < count_; }
  bool ready() const { return !empty() && !filling(); }
  size_t missing_header_bytes() const { return (count_ - got_) * kFrameHeaderBytes; }
  // False: the payloads do not have the bytes that the list was to have.
  bool add(const FrameHeader& header) {
    (*headers_)[got_++] = header;
    if (header.length > missing_) return false;
    missing_ -= header.length;
    return filling() || missing_ == 0;
  }
  uint32_t bytes() const { return bytes_; }  // of all payloads
  FrameHeader take() { return (*headers_)[next_++]; }
  // Behind the one that was taken last.
  std::span<const FrameHeader> rest() const {
    return std::span(*headers_).subspan(next_, count_ - next_);
  }
  // So many bytes of the payloads of rest() are in their places.
  void place_ahead(uint64_t bytes) { ahead_ += bytes; }
  // Of these, what belongs to a payload of `length`, which is next.
  uint64_t take_ahead(uint64_t length) {
    const uint64_t taken = std::min(ahead_, length);
    ahead_ -= taken;
    return taken;
  }

 private:
  using Headers = std::array<FrameHeader, kMostListed>;

  uint32_t next_ = 0, got_ = 0, count_ = 0;
  uint32_t bytes_ = 0, missing_ = 0;
  uint64_t ahead_ = 0;
  std::unique_ptr<Headers> headers_;
};

}  // namespace slime::tcp
