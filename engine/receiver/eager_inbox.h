// Small messages that came ahead of their CTS, at the receiver.
//
// A buffer
//   free      its message has not come
//   waiting   it has come, and waits for its receive; the header is copied and checked, for the
//   peer
//             may write into the buffer at any time
//   taken     its receive has it, but an older message is still waiting
// Credits, consumed() of them, go back in the order of the messages: a buffer is free for the peer
// once its message and all older ones are taken.
//
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/link/records.h"

namespace slime {

class EagerInbox {
 public:
  EagerInbox(const std::byte* buffers, uint32_t eager_max)
      : buffers_(buffers), eager_max_(eager_max) {}

  enum class Arrival : uint8_t { kNew, kRepeated, kMalformed };
  // A message is announced; `*buffer` is where it lies, if it is new.
  Arrival arrive(uint32_t immediate, uint64_t bytes, uint32_t* buffer);

  bool any_waiting() const { return waiting_ != 0; }
  bool has_tag(int32_t tag) const;
  std::optional<uint32_t> find(int32_t tag, uint32_t ordinal) const;
  const EagerHeader& header(uint32_t buffer) const { return headers_[buffer]; }
  const std::byte* payload(uint32_t buffer) const { return start(buffer) + sizeof(EagerHeader); }
  void take(uint32_t buffer);

  uint32_t consumed() const { return consumed_; }
  // A stream of small messages that needs no CTS, which would carry the credits, reports them.
  bool report_due() const { return consumed_ - reported_ >= kEagerBuffers / 2; }
  void reported() { reported_ = consumed_; }

 private:
  const std::byte* start(uint32_t buffer) const {
    return buffers_ + buffer * eager_buffer_bytes(eager_max_);
  }

  const std::byte* const buffers_;
  const uint32_t eager_max_;
  std::array<EagerHeader, kEagerBuffers> headers_;
  uint32_t waiting_ = 0;   // a bit per buffer
  uint32_t taken_ = 0;     // a bit per buffer
  uint32_t consumed_ = 0;  // all messages below this index are taken
  uint32_t reported_ = 0;  // what the sender has been told of it
};

}  // namespace slime
