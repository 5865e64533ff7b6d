#include "message/sender/eager_outbox.h"

#include <bit>
#include <cstring>

namespace slime {

bool EagerOutbox::fits(size_t bytes, const MemoryRegion* region) {
  if (eager_max_ == 0 || bytes > eager_max_) return false;
  if (region != nullptr && region->kind != MemoryKind::kHost) return false;
  return has_room(bytes);
}

bool EagerOutbox::has_room(size_t bytes) {
  if (sent_ - consumed_ >= kEagerBuffers) return false;
  LinkRails& rails = link_.rails();
  return !buffers_[sent_ % kEagerBuffers].open && rails.room(rails.quickest_rail(bytes)) > 0;
}

// Header and payload are copied into the outbox, and the rail reads the copy. The work is posted at
// once if the rail is idle, because the latency of a small message matters.
void EagerOutbox::send(SendRequest& request, const void* data, int tag, uint32_t ordinal,
                       uint32_t cts_seen) {
  const auto length = static_cast<uint32_t>(request.bytes);
  request.held = true;
  const EagerHeader header{sent_, length, tag, ordinal, cts_seen, 0};
  link_.rails().hurry(put(header, static_cast<const std::byte*>(data), length, &request));
}

// Returns the rail.
size_t EagerOutbox::put(const EagerHeader& header, const std::byte* payload, uint32_t bytes,
                        SendRequest* request) {
  const uint32_t index = sent_++, place = index % kEagerBuffers;
  SLIME_CHECK(sent_ - consumed_ <= kEagerBuffers && !buffers_[place].open);
  std::byte* const start = image(place);
  std::memcpy(start, &header, sizeof header);
  if (bytes > 0) std::memcpy(start + sizeof header, payload, bytes);
  buffers_[place] = {index, static_cast<uint32_t>(sizeof header) + bytes, request, 0, true};
  submit(place, false);
  return buffers_[place].rail;
}

void EagerOutbox::send_too_long(uint64_t bytes, int tag, uint32_t ordinal, uint32_t cts_seen) {
  if (!has_room(0)) return;  // the receiver learns of it when this comm is closed
  const auto length = static_cast<uint32_t>(bytes), high = static_cast<uint32_t>(bytes >> 32);
  const EagerHeader header{sent_, length, tag, ordinal, cts_seen, high};
  link_.rails().flush(put(header, nullptr, 0, nullptr), false);
}

Status EagerOutbox::refused(const Refusal& refusal) {
  const Buffer& buffer = buffers_[refusal.buffer];
  EagerHeader header;
  std::memcpy(&header, image(refusal.buffer), sizeof header);
  const bool waits = buffer.rail != Buffer::kNoRail && !has_arrived(buffer);
  if (!waits || header.bytes() <= refusal.capacity) {
    return link_.context().fail_protocol("a refusal of a message that does not wait");
  }
  return link_.context().fail(size_error(header.bytes(), header.tag, refusal.capacity));
}

// A first copy is confirmed only where works may overtake each other, a second copy always.
void EagerOutbox::submit(uint32_t place, bool again) {
  Buffer& buffer = buffers_[place];
  LinkRails& rails = link_.rails();
  const size_t rail = rails.quickest_rail(buffer.bytes);
  buffer.rail = static_cast<uint8_t>(rail);
  const OutboxPiece piece{place * eager_buffer_bytes(eager_max_), buffer.bytes};
  Work work = rails.write_of(piece, rail, eager_immediate(buffer.index));
  work.unconfirmed = !again && rails[rail].ordered;
  rails.submit(rail, work, this, place);
}

void EagerOutbox::finish(Buffer& buffer) {
  SLIME_CHECK(buffer.rail != Buffer::kNoRail);
  buffer.open = false;
  if (buffer.request != nullptr) buffer.request->held = false;
  buffer.request = nullptr;
}

// A message that has arrived needs no second copy; its request is done, if it was still open.
void EagerOutbox::resubmit_lost(size_t dead_rail) {
  for (uint32_t place = 0; place < kEagerBuffers; ++place) {
    Buffer& buffer = buffers_[place];
    if (buffer.rail != dead_rail) continue;
    if (has_arrived(buffer)) {
      finish(buffer);
    } else {
      buffer.open = true;
      submit(place, true);
    }
  }
}

// A link of one rail cannot send anything again, so there is nothing to wait for. Otherwise every
// message has arrived by its credits, or its rail proves that it has delivered everything.
bool EagerOutbox::settled() {
  if (link_.rails().count() == 1 || link_.status() != Status::kOk) return true;
  bool all = true;
  uint32_t used_rails = 0;
  for (const Buffer& buffer : buffers_) {
    if (buffer.rail == Buffer::kNoRail || has_arrived(buffer)) continue;
    all &= !buffer.open;
    used_rails |= 1u << buffer.rail;
  }
  for (; used_rails != 0; used_rails &= used_rails - 1) {
    all &= link_.has_delivered(static_cast<size_t>(std::countr_zero(used_rails)));
  }
  return all;
}

// The number comes from the peer: it counts only if so many messages have been sent.
void EagerOutbox::return_credits(uint32_t consumed) {
  const auto more = static_cast<int32_t>(consumed - consumed_);
  if (more > 0 && consumed - consumed_ <= sent_ - consumed_) consumed_ = consumed;
}

}  // namespace slime
