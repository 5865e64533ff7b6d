#include "transports/tcp/send_queue.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "transports/channel_common.h"

namespace slime::tcp {

// The peer may have as many writes on the way as this end.
SendQueue::SendQueue(uint32_t depth, bool confirm_delivery, uint32_t reads)
    : depth_(depth),
      mask_(std::bit_ceil(depth) - 1),
      confirm_(confirm_delivery),
      entries_(std::make_unique<Entry[]>(mask_ + 1)),
      control_(depth, reads),
      most_vectors_(vectors_for(depth)),
      vectors_(std::make_unique_for_overwrite<iovec[]>(most_vectors_)) {}

void SendQueue::append(std::span<const Work> works) {
  SLIME_CHECK(works.size() <= room());
  for (const Work& work : works) {
    const bool silent = work.opcode == Opcode::kWrite;
    const bool unanswered = !silent && (work.unconfirmed || !confirm_);
    Entry& slot = entry(tail_++);
    slot.header.type = static_cast<uint8_t>(silent ? FrameType::kSilentWrite : FrameType::kWrite);
    slot.header.flags = unanswered ? kNeedsNoAck : 0;
    slot.header.immediate = work.immediate;
    slot.header.length = work.length;
    slot.header.remote_address = work.length ? work.remote_address : 0;
    slot.header.remote_key = work.length ? work.remote_key : 0;
    slot.payload = work.local;
    slot.cookie = work.cookie;
  }
}

void SendQueue::add_vector(const void* data, size_t bytes) {
  SLIME_CHECK(vector_count_ < most_vectors_);
  vectors_[vector_count_++] = {const_cast<void*>(data), bytes};
  gathered_ += bytes;
}

void SendQueue::add_frame(Entry& slot, uint64_t offset) {
  const uint64_t payload_sent = offset > kFrameHeaderBytes ? offset - kFrameHeaderBytes : 0;
  if (offset < kFrameHeaderBytes) {
    add_vector(reinterpret_cast<const std::byte*>(&slot.header) + offset,
               kFrameHeaderBytes - offset);
  }
  if (slot.header.length > payload_sent) {
    add_vector(slot.payload + payload_sent, slot.header.length - payload_sent);
  }
}

void SendQueue::gather_whole(uint64_t from, uint32_t arrived) {
  for (uint64_t work = from; work != tail_; ++work) {
    if (vector_count_ + 2 > most_vectors_ || gathered_ >= kMaxCallBytes) return;
    Entry& slot = entry(work);
    slot.header.ack = arrived;
    add_frame(slot, 0);
  }
}

// A frame that has begun is first. An acknowledgement of its own is needed only where no header of
// a write will carry the count.
std::span<iovec> SendQueue::gather(uint32_t arrived, uint32_t awaited, bool begin_works) {
  vector_count_ = 0;
  gathered_ = 0;
  const uint64_t first_whole = next_ + (offset_ > 0);
  if (offset_ > 0) add_frame(entry(next_), offset_);
  if (owes_ack(awaited) && control_.empty() && (first_whole == tail_ || !begin_works)) {
    FrameHeader ack;
    ack.type = static_cast<uint8_t>(FrameType::kAck);
    control_.push(ack);
  }
  gathered_control_ = 0;
  if (!control_.empty()) {
    const auto frames = control_.bytes(arrived);
    gathered_control_ = frames.size();
    add_vector(frames.data(), frames.size());
  }
  if (begin_works) gather_whole(first_whole, arrived);
  return {vectors_.get(), vector_count_};
}

size_t SendQueue::advance(size_t bytes) {
  SLIME_CHECK(next_ != tail_);
  const Entry& slot = entry(next_);
  if (offset_ == 0) sent_ack_ = slot.header.ack;
  const uint64_t left = kFrameHeaderBytes + slot.header.length - offset_;
  const uint64_t step = std::min<uint64_t>(bytes, left);
  offset_ = step == left ? 0 : offset_ + step;
  next_ += step == left;
  return bytes - step;
}

void SendQueue::moved(size_t bytes) {
  SLIME_CHECK(bytes <= gathered_);
  blocked_ = bytes < gathered_;
  if (offset_ > 0 && bytes > 0) bytes = advance(bytes);
  if (const size_t of_control = std::min(bytes, gathered_control_); of_control > 0) {
    sent_ack_ = control_.moved(of_control);
    bytes -= of_control;
  }
  while (bytes > 0) bytes = advance(bytes);
  find_done();
}

bool SendQueue::acknowledge(uint32_t cumulative) {
  const uint32_t more = cumulative - static_cast<uint32_t>(acked_);
  if (more > next_ - acked_) return false;
  acked_ += more;
  find_done();
  return true;
}

// Of a write that is not reported yet, and waits for its acknowledgement.
bool SendQueue::refused(uint32_t number) {
  const uint32_t more = number - static_cast<uint32_t>(acked_);
  if (more == 0 || more > next_ - acked_) return false;
  const uint64_t work = acked_ + more - 1;
  if (work < done_ || (entry(work).header.flags & kNeedsNoAck) != 0) return false;
  if (entry(work).refused()) return false;
  entry(work).header.type = static_cast<uint8_t>(FrameType::kRefused);
  return true;
}

size_t SendQueue::take_sent(std::span<Done> done) {
  const size_t count = std::min(sent(), done.size());
  for (size_t i = 0; i < count; ++i) {
    const Entry& slot = entry(reported_++);
    done[i] = slot.refused() ? slime::refused(slot.cookie) : slime::sent(slot.cookie);
  }
  return count;
}

}  // namespace slime::tcp
