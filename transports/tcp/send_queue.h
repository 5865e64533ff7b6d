// The sending half of a channel: works from post() until they are reported as sent.
//
//     reported         done          next            tail
//   ------|-------------|--------------|---------------|-----> works, counted from 0
//         |  to report  |  on the way  |  not sent yet |
//
// A work is done when the kernel has it whole; with confirm_delivery, and unless it is unconfirmed,
// when the peer has acknowledged it. Works are done in their order.
//
// One thread. Nothing is allocated after construction.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transports/rail.h"
#include "transports/tcp/wire.h"

namespace slime::tcp {

class SendQueue {
 public:
  SendQueue(uint32_t depth, bool confirm_delivery);

  void answer_with_acks() { peer_wants_acks_ = true; }  // known after the handshake

  size_t room() const { return depth_ - (tail_ - reported_); }
  void append(std::span<const Work> works);  // at most room()

  // Something to send, an acknowledgement of `awaited` of the peer's works included.
  bool wants_to_send(uint32_t awaited) const {
    return next_ != tail_ || ack_left_ != 0 || owes_ack(awaited);
  }
  // What is to be sent now, in this order; then moved() with the bytes that the kernel took. The
  // vectors are valid until then. `arrived` is the newest count of the peer's works that arrived,
  // `awaited` the count up to the last of them that wants an acknowledgement.
  std::span<iovec> gather(uint32_t arrived, uint32_t awaited);
  void moved(size_t bytes);
  bool blocked() const { return blocked_; }  // the kernel took less than it was offered

  // The peer's count of our works. False: it claims works that we have not sent.
  bool acknowledge(uint32_t cumulative);
  size_t sent() const { return done_ - reported_; }  // and not yet taken
  size_t take_sent(std::span<Done> done);
  size_t outstanding() const { return tail_ - done_; }

 private:
  struct Entry {
    FrameHeader header;
    const std::byte* payload;
    uint64_t cookie;
  };
  // Per call. With more bytes the caller stays in the kernel while its own input waits, and what it
  // sends falls out of the cache before the peer reads it. Far fewer vectors than IOV_MAX (1024).
  static constexpr size_t kMaxCallBytes = size_t{2} << 20;
  static constexpr size_t kMaxVectors = 512;

  Entry& entry(uint64_t work) { return entries_[work & mask_]; }
  bool owes_ack(uint32_t awaited) const {
    return peer_wants_acks_ && static_cast<int32_t>(awaited - sent_ack_) > 0;
  }
  bool is_done(uint64_t work) {
    return !confirm_ || work < acked_ || (entry(work).header.flags & kNeedsNoAck) != 0;
  }
  void find_done() {
    while (done_ != next_ && is_done(done_)) ++done_;
  }
  void add_vector(const void* data, size_t bytes);
  bool gather_works(uint32_t arrived);  // false: not all of them fit

  const uint32_t depth_;
  const uint64_t mask_;
  const bool confirm_;
  bool peer_wants_acks_ = false;
  bool blocked_ = false;
  const std::unique_ptr<Entry[]> entries_;

  uint64_t tail_ = 0;    // works posted
  uint64_t next_ = 0;    // works that the kernel has whole
  uint64_t offset_ = 0;  // bytes of the frame of work next_ that the kernel has
  uint64_t acked_ = 0;   // works that the peer has acknowledged
  uint64_t done_ = 0;
  uint64_t reported_ = 0;  // works whose kSent was given out

  FrameHeader ack_frame_;
  size_t ack_left_ = 0;    // bytes of ack_frame_ that must go before anything else
  uint32_t sent_ack_ = 0;  // newest count that the kernel has, or has the beginning of

  std::array<iovec, kMaxVectors + 1> vectors_;  // one more: an acknowledgement at the end
  size_t vector_count_ = 0;
  size_t gathered_ = 0;         // bytes in vectors_
  bool ack_in_header_ = false;  // a header in vectors_ carries the newest count
};

}  // namespace slime::tcp
