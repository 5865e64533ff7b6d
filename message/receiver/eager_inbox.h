// Eager messages at the receiver.
//
// States of a buffer
//   free      no message has come
//   waiting   a message has come, and waits for its receive; its header has been copied and
//             checked, because the peer could write into the buffer at any time
//   taken     the receive has the message, but an older message is still waiting
// What makes reuse safe: credits return in the order of the messages. The peer may write a buffer
// again when its message and all older ones are taken; consumed() counts those.
//
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "message/records.h"

namespace slime {

class EagerInbox {
 public:
  EagerInbox(const std::byte* buffers, uint32_t eager_max)
      : buffers_(buffers), eager_max_(eager_max) {}

  enum class Arrival : uint8_t { kNew, kRepeated, kMalformed };
  // A message has come. `*buffer` is its buffer, if it is new.
  Arrival arrive(uint32_t immediate, uint64_t bytes, uint32_t* buffer);

  bool any_waiting() const { return waiting_ != 0; }
  bool has_tag(int32_t tag) const;
  std::optional<uint32_t> find(int32_t tag, uint32_t ordinal) const;
  const EagerHeader& header(uint32_t buffer) const { return headers_[buffer]; }
  // False: the sender says that the message is too long for its receive.
  bool has_payload(uint32_t buffer) const { return (bare_ >> buffer & 1) == 0; }
  const std::byte* payload(uint32_t buffer) const { return start(buffer) + sizeof(EagerHeader); }
  void take(uint32_t buffer);

  uint32_t consumed() const { return consumed_; }
  // Half of the credits have not been reported. A stream of eager messages has no CTS that would
  // return them.
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
  uint32_t bare_ = 0;      // messages without their payload, a bit per buffer
  uint32_t consumed_ = 0;  // all messages below this index are taken
  uint32_t reported_ = 0;  // the value of consumed_ that the sender was last sent
};

}  // namespace slime
