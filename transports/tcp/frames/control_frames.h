// Frames without payload that a channel has to send: acknowledgements, refusals, requests to read.
// They go before works, at the next boundary of two frames.
//
// A refusal tells the peer that it has no right to a place. So there are only so many: else a peer
// could try one key after the other until one is right. A peer in the right is refused only where
// memory goes while its works are on the way.
//
// State: frames in the order of push(), of which the first may be sent in part; and the allowance
// of refusals, which grows again with time. One thread; nothing is allocated after construction.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

class ControlFrames {
 public:
  static constexpr uint32_t kRefusalsAtOnce = 4096, kRefusalsPerSecond = 64;

  // At most `writes` refusals of writes wait at once, and requests and refusals of all reads.
  ControlFrames(uint32_t writes, uint32_t reads)
      : writes_(writes), most_(writes + 2 * reads + 1), frames_(new FrameHeader[most_]) {}

  bool empty() const { return begin_ == end_; }
  // There is room: for refusals of writes by refuse_write(); for requests, because a place of Reads
  // is not free before its request has been sent; for refusals of reads, because Answers goes on
  // only when nothing waits here.
  void push(const FrameHeader& frame) {
    if (end_ == most_) move_to_front();
    SLIME_CHECK(end_ < most_);
    frames_[end_++] = frame;
  }
  // The request of this read has not been sent whole.
  bool waits_to_ask(uint32_t place) const {
    return std::any_of(frames_.get() + begin_, frames_.get() + end_, [&](const FrameHeader& frame) {
      return is(frame, FrameType::kRead) && frame.immediate == place;
    });
  }
  // The peer's write with this number, or its read of this place. False: it has had too many.
  bool refuse_write(uint32_t number) {
    const auto waiting =
        std::count_if(frames_.get() + begin_, frames_.get() + end_,
                      [](const FrameHeader& frame) { return is(frame, FrameType::kRefused); });
    return static_cast<size_t>(waiting) < writes_ && refuse(FrameType::kRefused, number);
  }
  bool refuse_read(uint32_t place) { return refuse(FrameType::kReadRefused, place); }
  uint64_t refused() const { return refused_; }  // so far

  // What is to be sent, with the newest count of writes that have arrived in the frames that have
  // not begun. No frame acknowledges a write whose refusal comes after it: the peer would take it
  // for done.
  std::span<const std::byte> bytes(uint32_t arrived) {
    for (size_t i = end_; i > begin_ + (offset_ > 0); --i) {
      FrameHeader& frame = frames_[i - 1];
      frame.ack = arrived;
      if (is(frame, FrameType::kRefused)) arrived = frame.immediate - 1;
    }
    return std::as_bytes(std::span(&frames_[begin_], end_ - begin_)).subspan(offset_);
  }
  // The kernel took so many of these bytes. Returns the count in the last frame that has begun.
  uint32_t moved(size_t bytes) {
    offset_ += bytes;
    const uint32_t ack = frames_[begin_ + (offset_ - 1) / kFrameHeaderBytes].ack;
    begin_ += offset_ / kFrameHeaderBytes;
    offset_ %= kFrameHeaderBytes;
    if (begin_ == end_) begin_ = end_ = 0;
    return ack;
  }

 private:
  static bool is(const FrameHeader& frame, FrameType type) {
    return frame.type == static_cast<uint8_t>(type);
  }
  bool refuse(FrameType type, uint32_t which) {
    grow_allowance(steady_now_ns());
    if (allowance_ == 0) return false;
    --allowance_;
    ++refused_;
    FrameHeader refusal;
    refusal.type = static_cast<uint8_t>(type);
    refusal.immediate = which;
    push(refusal);
    return true;
  }
  void grow_allowance(uint64_t now_ns) {
    constexpr uint64_t kEach = 1'000'000'000 / kRefusalsPerSecond;
    const uint64_t more = (now_ns - grown_ns_) / kEach;
    grown_ns_ += more * kEach;
    allowance_ = static_cast<uint32_t>(std::min<uint64_t>(allowance_ + more, kRefusalsAtOnce));
  }
  void move_to_front() {
    std::memmove(&frames_[0], &frames_[begin_], (end_ - begin_) * sizeof(FrameHeader));
    end_ -= begin_;
    begin_ = 0;
  }

  const size_t writes_, most_;
  const std::unique_ptr<FrameHeader[]> frames_;
  size_t begin_ = 0, end_ = 0;            // frames that are not sent whole
  size_t offset_ = 0;                     // bytes of the first of them that the kernel has
  uint32_t allowance_ = kRefusalsAtOnce;  // refusals that there may be now
  uint64_t grown_ns_ = steady_now_ns();
  uint64_t refused_ = 0;
};

}  // namespace slime::tcp
