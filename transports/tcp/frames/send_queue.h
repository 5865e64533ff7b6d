// The sending half of a channel: writes from post() until they are reported as sent or refused.
//
//     reported         done          next            tail
//   ------|-------------|--------------|---------------|-----> writes, counted from 0
//         |  to report  |  on the way  |  not sent yet |
//
// A write is done when the kernel has it whole; a silent one, and with confirm_delivery all that
// are not unconfirmed, when the peer has acknowledged it. Writes are done in their order. Control
// frames go before writes of which the kernel has nothing yet. Short silent writes leave in lists
// (write_list.h), one list in each call.
//
// One thread. Nothing is allocated after construction, but for the first list.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transports/rail.h"
#include "transports/tcp/frames/control_frames.h"
#include "transports/tcp/frames/wire.h"
#include "transports/tcp/frames/write_list.h"

namespace slime::tcp {

class SendQueue {
 public:
  SendQueue(uint32_t depth, bool confirm_delivery, uint32_t reads);

  uint32_t depth() const { return depth_; }
  size_t room() const { return depth_ - (tail_ - reported_); }
  void append(std::span<const Work> works);  // at most room()

  ControlFrames& control() { return control_; }
  const ControlFrames& control() const { return control_; }

  // Something to send, an acknowledgement of `awaited` of the peer's writes included.
  bool wants_to_send(uint32_t awaited) const {
    return next_ != tail_ || !control_.empty() || owes_ack(awaited);
  }
  // What it may have to send is an acknowledgement alone.
  bool has_no_frames() const { return next_ == tail_ && control_.empty(); }
  // What is to be sent now, in this order; then moved() with the bytes that the kernel took. The
  // vectors are valid until then. `arrived` is the newest count of the peer's writes that arrived,
  // `awaited` the count up to the last of them that wants an acknowledgement. `begin_works`: also
  // frames of writes that have not begun.
  std::span<iovec> gather(uint32_t arrived, uint32_t awaited, bool begin_works);
  size_t gathered() const { return gathered_; }  // bytes of these
  void moved(size_t bytes);
  bool blocked() const { return blocked_; }  // the kernel took less than it was offered
  // An answer carried this count of the peer's writes.
  void note_ack(uint32_t arrived) { sent_ack_ = arrived; }

  // The peer's count of our writes. False: it claims some that we have not sent.
  bool acknowledge(uint32_t cumulative);
  // The peer has thrown the write with this number away. False: it cannot be that one.
  bool refused(uint32_t number);
  size_t sent() const { return done_ - reported_; }  // and not yet taken
  size_t take_sent(std::span<Done> done);
  size_t outstanding() const { return tail_ - done_; }

 private:
  struct Entry {
    // Its type becomes kRefused when the peer says so: what was sent is not needed any more.
    FrameHeader header;
    const std::byte* payload;
    uint64_t cookie;
    bool refused() const { return header.type == static_cast<uint8_t>(FrameType::kRefused); }
  };
  // Per call. With more bytes the caller stays in the kernel while its own input waits, and what it
  // sends falls out of the cache before the peer reads it. Far fewer vectors than IOV_MAX (1024).
  static constexpr size_t kMaxCallBytes = size_t{2} << 20;
  static constexpr size_t kMaxVectors = 512;
  // Longer payloads are worth a call of the receiver each.
  static constexpr uint32_t kMostShort = 32 << 10;
  // A header and a payload for each write, one more for the control frames, and for a list's block.
  static size_t vectors_for(uint32_t depth) { return std::min<size_t>(2 * depth + 2, kMaxVectors); }

  Entry& entry(uint64_t work) { return entries_[work & mask_]; }
  bool owes_ack(uint32_t awaited) const { return static_cast<int32_t>(awaited - sent_ack_) > 0; }
  bool is_done(uint64_t work) {
    return work < acked_ || (entry(work).header.flags & kNeedsNoAck) != 0;
  }
  void find_done() {
    while (done_ != next_ && is_done(done_)) ++done_;
  }
  void add_vector(const void* data, size_t bytes);
  size_t header_bytes(uint64_t work) const { return list_.covers(work) ? 0 : kFrameHeaderBytes; }
  void add_frame(uint64_t work, uint64_t offset);
  uint64_t gather_begun();
  void gather_whole(uint64_t from, uint32_t arrived);
  bool may_be_listed(uint64_t work);
  bool gather_list(uint64_t from, uint32_t arrived);
  size_t advance(size_t bytes);  // of the write next_; returns what is left

  const uint32_t depth_;
  const uint64_t mask_;
  const bool confirm_;
  bool blocked_ = false;
  const std::unique_ptr<Entry[]> entries_;

  uint64_t tail_ = 0;    // writes posted
  uint64_t next_ = 0;    // writes that the kernel has whole
  uint64_t offset_ = 0;  // bytes of the frame of write next_ that the kernel has
  WriteList list_;       // the one that the kernel has a part of, or the one gathered last
  uint64_t acked_ = 0;   // writes that the peer has acknowledged
  uint64_t done_ = 0;
  uint64_t reported_ = 0;  // writes whose kSent or kRefused was given out

  ControlFrames control_;
  uint32_t sent_ack_ = 0;  // newest count that the kernel has, or has the beginning of

  const size_t most_vectors_;
  const std::unique_ptr<iovec[]> vectors_;
  size_t vector_count_ = 0;
  size_t gathered_ = 0;          // bytes in vectors_
  size_t gathered_begun_ = 0;    // of what had begun before
  size_t gathered_control_ = 0;  // of control frames
};

}  // namespace slime::tcp
