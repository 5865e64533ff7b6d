// Writes whose headers leave together, before their payloads, so that the receiver reads many short
// payloads to their places by one call (FrameType::kList).
//
//   | kList: n, bytes | header 1 | ... | header n | payload 1 | ... | payload n |
//   |------------- the block ---------------------|
//
// States: empty; or of the writes [first, end), of whose block the kernel has sent() bytes. Once it
// has some, the whole list leaves before anything else does. One thread. Memory: 2 KiB from the
// first list on; NCCL's channels have none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

class WriteList {
 public:
  static constexpr uint32_t kLeast = 4;  // fewer are not worth a header more

  // A new one, of which nothing has been sent. `bytes`: of all payloads.
  void begin(uint64_t first, uint32_t bytes, uint32_t arrived) {
    if (block_ == nullptr) block_ = std::make_unique<Block>();
    first_ = end_ = first;
    sent_ = 0;
    FrameHeader& head = (*block_)[0];
    head.type = static_cast<uint8_t>(FrameType::kList);
    head.length = bytes;
    head.ack = arrived;
  }
  void add(const FrameHeader& header) {
    SLIME_CHECK(count() < kMostListed);
    ++end_;
    (*block_)[count()] = header;
    (*block_)[0].immediate = count();
  }
  void clear() { first_ = end_ = sent_ = 0; }

  bool empty() const { return first_ == end_; }
  uint64_t end() const { return end_; }
  // The header of this write is in the block.
  bool covers(uint64_t write) const { return write >= first_ && write < end_; }
  bool has_begun() const { return sent_ > 0; }
  // What the kernel has not got of the block.
  std::span<const std::byte> rest() const {
    return std::as_bytes(std::span(*block_).first(count() + 1)).subspan(sent_);
  }
  void moved(size_t bytes) { sent_ += bytes; }

 private:
  using Block = std::array<FrameHeader, kMostListed + 1>;

  uint32_t count() const { return static_cast<uint32_t>(end_ - first_); }

  uint64_t first_ = 0, end_ = 0;
  size_t sent_ = 0;
  std::unique_ptr<Block> block_;
};

}  // namespace slime::tcp
