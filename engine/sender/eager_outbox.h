// Small messages ahead of their CTS, at the sender: copied here, written into a buffer of the
// receiver, copied there.
//
// A buffer, at both ends
//   free   the receiver has consumed what was in it (its credits say so), and no work of ours is
//          open on it: the next message with that number modulo kEagerBuffers may take it
//   open   its rail has not taken the message yet; a request waits for that
//   sent   its request is done; the message is kept, to be sent again if its rail dies
//
// The receiver's credits say which messages have arrived, so they need no confirmation. A message
// that is sent again does: its first copy may have brought the credit to use the buffer for
// another, which the second must not overwrite. And where works may overtake each other, a probe
// that comes back says nothing of a message before it: see settled().
//
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>

#include "engine/link/link.h"
#include "engine/link/records.h"
#include "engine/sender/send_request.h"

namespace slime {

class EagerOutbox {
 public:
  EagerOutbox(Link& link, const Outbox& outbox, uint32_t eager_max)
      : link_(link), outbox_(outbox), eager_max_(eager_max) {}

  // Whether a message goes eagerly, now. At least one rail must be up.
  bool fits(size_t bytes, const MemoryRegion* region);
  // The request is done when the rail has taken the bytes, not when they were copied: after the
  // last test nobody would post them.
  void send(SendRequest& request, int tag, uint32_t ordinal, uint32_t cts_seen);
  bool on_sent(const WorkId& work, uint64_t* bytes);
  // The rail died: what is not known to have arrived goes over another one.
  void repeat(size_t dead_rail);
  // Whether no message can be lost any more by the end of the comm. If not, the rails are asked.
  bool settled();

  uint32_t consumed() const { return consumed_; }
  void return_credits(uint32_t consumed);

 private:
  struct Buffer {
    static constexpr uint8_t kNoRail = UINT8_MAX;  // never used
    uint32_t index = 0;                            // number of its message
    uint32_t bytes = 0;                            // header and payload
    SendRequest* request = nullptr;                // that waits for the rail to take it
    uint8_t rail = kNoRail;
    bool open = false;
  };
  bool has_arrived(const Buffer& buffer) const {
    return static_cast<int32_t>(buffer.index - consumed_) < 0;
  }
  void submit(uint32_t place, bool again);
  void finish(Buffer& buffer);

  Link& link_;
  const Outbox& outbox_;
  const uint32_t eager_max_;
  std::array<Buffer, kEagerBuffers> buffers_;
  uint32_t sent_ = 0;
  uint32_t consumed_ = 0;  // by the receiver, as it says
};

}  // namespace slime
