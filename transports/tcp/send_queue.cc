#include "transports/tcp/send_queue.h"

#include "transports/channel_common.h"

#include <algorithm>
#include <bit>

namespace slime::tcp {

SendQueue::SendQueue(uint32_t depth, bool confirm_delivery)
    : depth_(depth),
      mask_(std::bit_ceil(depth) - 1),
      confirm_(confirm_delivery),
      entries_(std::make_unique<Entry[]>(mask_ + 1)) {
  ack_frame_.type = static_cast<uint8_t>(FrameType::kAck);
}

void SendQueue::append(std::span<const Work> works) {
  for (const Work& work : works) {
    Entry& slot = entry(tail_++);
    slot.header.type = static_cast<uint8_t>(FrameType::kWrite);
    slot.header.flags = work.unconfirmed ? kNeedsNoAck : 0;
    slot.header.immediate = work.immediate;
    slot.header.length = work.length;
    slot.header.remote_address = work.length ? work.remote_address : 0;
    slot.header.remote_key = work.length ? work.remote_key : 0;
    slot.payload = work.local;
    slot.cookie = work.cookie;
  }
}

void SendQueue::add_vector(const void* data, size_t bytes) {
  vectors_[vector_count_++] = {const_cast<void*>(data), bytes};
  gathered_ += bytes;
}

bool SendQueue::gather_works(uint32_t arrived) {
  uint64_t offset = offset_;
  for (uint64_t work = next_; work != tail_; ++work, offset = 0) {
    if (vector_count_ + 2 > kMaxVectors || gathered_ >= kMaxCallBytes) return false;
    Entry& slot = entry(work);
    if (offset == 0) {
      slot.header.ack = arrived;
      ack_in_header_ = true;
    }
    const uint64_t payload_sent = offset > kFrameHeaderBytes ? offset - kFrameHeaderBytes : 0;
    if (offset < kFrameHeaderBytes) {
      add_vector(reinterpret_cast<const std::byte*>(&slot.header) + offset,
                 kFrameHeaderBytes - offset);
    }
    if (slot.header.length > payload_sent) {
      add_vector(slot.payload + payload_sent, slot.header.length - payload_sent);
    }
  }
  return true;
}

std::span<iovec> SendQueue::gather(uint32_t arrived, uint32_t awaited) {
  vector_count_ = 0;
  gathered_ = 0;
  ack_in_header_ = false;
  if (ack_left_) {
    add_vector(reinterpret_cast<const std::byte*>(&ack_frame_) + kFrameHeaderBytes - ack_left_,
               ack_left_);
  }
  const bool all = gather_works(arrived);
  // An acknowledgement of its own goes last, and only where it does not disturb the remainder of
  // an earlier one, which still needs ack_frame_.
  if (all && owes_ack(awaited) && !ack_in_header_ && !ack_left_) {
    ack_frame_.ack = arrived;
    add_vector(&ack_frame_, kFrameHeaderBytes);
  }
  return std::span(vectors_).first(vector_count_);
}

void SendQueue::moved(size_t bytes) {
  blocked_ = bytes < gathered_;
  const size_t of_ack = std::min(bytes, ack_left_);
  ack_left_ -= of_ack;
  bytes -= of_ack;
  while (bytes > 0 && next_ != tail_) {
    const Entry& slot = entry(next_);
    if (offset_ == 0) sent_ack_ = slot.header.ack;
    const uint64_t left = kFrameHeaderBytes + slot.header.length - offset_;
    const uint64_t step = std::min<uint64_t>(bytes, left);
    bytes -= step;
    offset_ = step == left ? 0 : offset_ + step;
    next_ += step == left;
  }
  find_done();
  if (bytes == 0) return;
  sent_ack_ = ack_frame_.ack;  // all that is left was of ack_frame_
  ack_left_ = kFrameHeaderBytes - bytes;
}

bool SendQueue::acknowledge(uint32_t cumulative) {
  const uint32_t more = cumulative - static_cast<uint32_t>(acked_);
  if (more > next_ - acked_) return false;
  acked_ += more;
  find_done();
  return true;
}

size_t SendQueue::take_sent(std::span<Done> done) {
  const size_t count = std::min(sent(), done.size());
  for (size_t i = 0; i < count; ++i) done[i] = slime::sent(entry(reported_++).cookie);
  return count;
}

}  // namespace slime::tcp
