// The reads of the peer that this end answers, in turns, so that a long one delays no other. A turn
// has at most kMaxAnswerBytes if the kernel took the last one at once, and else kSlowAnswerBytes:
// what comes next waits for the rest of a frame. Whole short answers leave together, kTogetherBytes
// by one call.
//
// States: requests that are to be answered, oldest turn first; and perhaps a frame that the kernel
// has in part. The memory of a read is pinned for one call only, and its key looked up anew each
// time: deregistering never waits for a peer that does not take its answers. If the memory goes in
// the middle of a frame, zeros fill the frame, and a refusal follows. So bytes alone are no answer:
// a kReadDone follows the last of them, in the same call. One thread; nothing is allocated after
// construction.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/check.h"
#include "transports/region_table.h"
#include "transports/tcp/frames/control_frames.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

class Answers {
 public:
  static constexpr size_t kTogether = kMaxReads, kTogetherBytes = 1 << 20;
  static constexpr uint32_t kSlowAnswerBytes = 256 << 10;

  // The peer may have `most` reads under way: kMaxReads at most.
  Answers(const RegionTable& regions, uint32_t most) : regions_(regions), most_(most) {}

  bool empty() const { return count_ == 0; }
  bool mid_frame() const { return offset_ > 0; }
  // False: the peer has as many reads under way as it may have.
  bool take(const FrameHeader& request);
  // Sends some of one frame: of the one that has begun, or, if no control frame waits, of the next,
  // and then of those behind it. First it refuses the reads for which there is no memory. Returns
  // what `send_vectors` returned, which gets a span of iovec as sendmsg(2) does, or 0 if it was not
  // called. *asked: the bytes that it was offered. `arrived`: the newest count of the peer's
  // writes.
  template <typename SendVectors>
  ssize_t send(SendVectors send_vectors, uint32_t arrived, ControlFrames& control, size_t* asked) {
    SLIME_CHECK(mid_frame() || control.empty());
    *asked = 0;
    const bool begins = !mid_frame();
    if (begins && !begin_frame(arrived, control)) return 0;
    const size_t sent = payload_sent(), left = headers_.answer.length - sent;
    const RegionTable::Pin pin(regions_, first().key, first().address + sent, left, kRemoteRead);
    gone_ |= left > 0 && pin.access() != RegionTable::Access::kGranted;
    Vectors vectors = gather();
    if (!begins || count_ == 1) return hand_over(send_vectors, vectors, {}, control, asked);
    Further further;
    gather_further(arrived, &further, &vectors);
    return hand_over(send_vectors, vectors, further.headers, control, asked);
  }
  uint32_t sent_ack() const { return headers_.answer.ack; }    // of the last frame that has begun
  bool refused_too_many() const { return refused_too_many_; }  // send() must not be called again

 private:
  struct Request {
    uint64_t key = 0, address = 0;
    uint32_t place = 0, left = 0;
  };

  // Its frame, and the kReadDone that may follow.
  struct Headers {
    Headers() = default;
    Headers(const Request& request, uint32_t arrived, uint32_t most);
    FrameHeader answer, end;
  };

  // Whole answers to the requests behind the first, for one call.
  struct Further {
    std::array<Headers, kTogether - 1> headers;
    std::array<std::optional<RegionTable::Pin>, kTogether - 1> pins;
  };

  Request& at(size_t index) { return requests_[(first_ + index) % kMaxReads]; }
  Request& first() { return at(0); }
  void append(const Request& request) { requests_[(first_ + count_++) % kMaxReads] = request; }
  Request pop() {
    const Request request = first();
    ++first_;
    --count_;
    return request;
  }
  struct Vectors {
    std::array<iovec, 3 * kTogether> all;
    size_t count = 0, bytes = 0;
    void add(const void* from, size_t length, size_t sent) {
      if (sent == length) return;
      all[count++] = {const_cast<std::byte*>(static_cast<const std::byte*>(from)) + sent,
                      length - sent};
      bytes += length - sent;
    }
  };
  // Where the kReadDone begins.
  size_t end_at() const { return kFrameHeaderBytes + headers_.answer.length; }
  size_t frame_bytes() { return end_at() + (ends_read() ? kFrameHeaderBytes : 0); }
  size_t payload_sent() const {
    return std::clamp(offset_, kFrameHeaderBytes, end_at()) - kFrameHeaderBytes;
  }
  bool ends_read() { return !gone_ && first().left == headers_.answer.length; }
  Vectors gather();
  void gather_further(uint32_t arrived, Further* further, Vectors* vectors);
  template <typename SendVectors>
  ssize_t hand_over(SendVectors& send_vectors, Vectors& vectors, std::span<const Headers> further,
                    ControlFrames& control, size_t* asked) {
    const bool begins = !mid_frame();
    *asked = vectors.bytes;
    const ssize_t result = send_vectors(std::span(vectors.all).first(vectors.count));
    const bool all = result == static_cast<ssize_t>(*asked);
    if (!all || (begins && !gone_)) most_bytes_ = all ? kMaxAnswerBytes : kSlowAnswerBytes;
    if (result > 0) moved(static_cast<size_t>(result), further, control);
    return result;
  }
  bool begin_frame(uint32_t arrived, ControlFrames& control);
  void moved(size_t bytes, std::span<const Headers> further, ControlFrames& control);
  void end_frame(ControlFrames& control);
  void refuse_first(ControlFrames& control);

  const RegionTable& regions_;
  const size_t most_;
  std::array<Request, kMaxReads> requests_;
  size_t first_ = 0, count_ = 0;
  uint32_t most_bytes_ = kSlowAnswerBytes;  // of a turn
  Headers headers_;    // of the frame under way; its end follows if ends_read()
  size_t offset_ = 0;  // bytes of all that that the kernel has
  bool gone_ = false;  // the memory of the frame was deregistered: zeros fill it
  bool refused_too_many_ = false;
};

}  // namespace slime::tcp
