// Eager messages at the sender: they are copied into a buffer here, written into the same buffer at
// the receiver, and copied out there.
//
// States of a buffer
//   free   the receiver has consumed its message (its credits say so), and no work is open on it:
//          the next message with that number modulo kEagerBuffers may use it
//   open   the rail has not taken the message yet; a request waits for that
//   sent   the request is done; the message is kept, to be sent again if its rail dies
//
// What makes reuse safe: the receiver's credits say which messages have arrived, so a first copy
// needs no confirmation. A second copy does: the first one may have brought the credit that lets
// the next message use the buffer, and the second must not overwrite that one. Where works may
// overtake each other, the first copy is confirmed too, because a probe that comes back proves
// nothing about messages before it; see settled().
//
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>

#include "link/link.h"
#include "message/records.h"
#include "message/sender/send_request.h"

namespace slime {

class EagerOutbox final : private WorkOwner {
 public:
  EagerOutbox(Link& link, uint32_t eager_max) : link_(link), eager_max_(eager_max) {}

  // Whether a message can go eagerly now. At least one rail must be up.
  bool fits(size_t bytes, const MemoryRegion* region);
  // The request is done when the rail has taken the bytes, not when they were copied: after the
  // last test no call would post them.
  void send(SendRequest& request, const void* data, int tag, uint32_t ordinal, uint32_t cts_seen);
  // Tells the receiver, if a buffer is free, that a message is too long for its receive: the header
  // goes without the payload.
  void send_too_long(uint64_t bytes, int tag, uint32_t ordinal, uint32_t cts_seen);
  // The receiver says so of a message that was sent.
  Status refused(const Refusal& refusal);
  // The rail died: messages that are not known to have arrived go over another one.
  void resubmit_lost(size_t dead_rail);
  // Whether the comm can end without losing a message. If that is not known, sends probes.
  bool settled();

  uint32_t consumed() const { return consumed_; }
  void return_credits(uint32_t consumed);

 private:
  // Of a buffer's work. Lost ones are sent again by resubmit_lost(), with those that were done.
  void on_done(uint32_t place) override { finish(buffers_[place]); }
  void on_lost(uint32_t) override {}

  struct Buffer {
    static constexpr uint8_t kNoRail = UINT8_MAX;  // never used
    uint32_t index = 0;                            // number of the message in it
    uint32_t bytes = 0;                            // header and payload
    SendRequest* request = nullptr;                // waits until the rail takes the message
    uint8_t rail = kNoRail;
    bool open = false;
  };
  bool has_arrived(const Buffer& buffer) const {
    return static_cast<int32_t>(buffer.index - consumed_) < 0;
  }
  bool has_room(size_t bytes);
  std::byte* image(uint32_t place) const {
    return link_.memory().outbox() + place * eager_buffer_bytes(eager_max_);
  }
  size_t put(const EagerHeader& header, const std::byte* payload, uint32_t bytes,
             SendRequest* request);
  void submit(uint32_t place, bool again);
  void finish(Buffer& buffer);

  Link& link_;
  const uint32_t eager_max_;
  std::array<Buffer, kEagerBuffers> buffers_;
  uint32_t sent_ = 0;
  uint32_t consumed_ = 0;  // messages that the receiver has consumed, by its credits
};

}  // namespace slime
