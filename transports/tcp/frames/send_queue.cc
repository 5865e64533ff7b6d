#include "transports/tcp/frames/send_queue.h"

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

void SendQueue::add_frame(uint64_t work, uint64_t offset) {
  const Entry& slot = entry(work);
  const size_t header = header_bytes(work);
  const uint64_t payload_sent = offset > header ? offset - header : 0;
  if (offset < header) {
    add_vector(reinterpret_cast<const std::byte*>(&slot.header) + offset, header - offset);
  }
  if (slot.header.length > payload_sent) {
    add_vector(slot.payload + payload_sent, slot.header.length - payload_sent);
  }
}

// The rest of the frame or list that has begun. Returns the first write behind it.
uint64_t SendQueue::gather_begun() {
  uint64_t work = next_;
  if (list_.has_begun() && list_.covers(next_)) {
    if (const auto block = list_.rest(); !block.empty()) add_vector(block.data(), block.size());
    for (; work != list_.end(); ++work) add_frame(work, work == next_ ? offset_ : 0);
  } else {
    list_.clear();
    if (offset_ > 0) add_frame(work++, offset_);
  }
  gathered_begun_ = gathered_;
  return work;
}

void SendQueue::gather_whole(uint64_t from, uint32_t arrived) {
  for (uint64_t work = from; work != tail_; ++work) {
    if (vector_count_ + 2 > most_vectors_ || gathered_ >= kMaxCallBytes) return;
    if (may_be_listed(work)) {
      if (!list_.empty()) return;  // one list in each call
      if (gather_list(work, arrived)) {
        work = list_.end() - 1;
        continue;
      }
    }
    entry(work).header.ack = arrived;
    add_frame(work, 0);
  }
}

bool SendQueue::may_be_listed(uint64_t work) {
  const FrameHeader& header = entry(work).header;
  return header.type == static_cast<uint8_t>(FrameType::kSilentWrite) && header.length > 0 &&
         header.length <= kMostShort;
}

// False: fewer than WriteList::kLeast short writes wait here.
bool SendQueue::gather_list(uint64_t from, uint32_t arrived) {
  const uint64_t room = most_vectors_ - vector_count_ - 1;
  const uint64_t most = std::min({from + kMostListed, from + room, tail_});
  // What the kernel does not take at once holds up what is behind it, and is acknowledged late.
  const uint32_t most_bytes = blocked_ ? kMaxListBytes / 4 : kMaxListBytes;
  uint64_t end = from;
  uint32_t bytes = 0;
  for (; end != most && may_be_listed(end); bytes += entry(end++).header.length) {
    if (bytes + entry(end).header.length > most_bytes) break;
  }
  if (end < from + WriteList::kLeast) return false;
  list_.begin(from, bytes, arrived);
  for (uint64_t work = from; work != end; ++work) {
    entry(work).header.ack = arrived;
    list_.add(entry(work).header);
  }
  add_vector(list_.rest().data(), list_.rest().size());
  for (uint64_t work = from; work != end; ++work) add_frame(work, 0);
  return true;
}

// The frame or list that has begun comes first. An acknowledgement of its own is needed only where
// no header of a write will carry the count.
std::span<iovec> SendQueue::gather(uint32_t arrived, uint32_t awaited, bool begin_works) {
  vector_count_ = 0;
  gathered_ = 0;
  const uint64_t first_whole = gather_begun();
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
  if (list_.covers(next_) && !list_.rest().empty()) {
    const size_t of_block = std::min(bytes, list_.rest().size());
    list_.moved(of_block);
    return bytes - of_block;
  }
  const uint64_t left = header_bytes(next_) + slot.header.length - offset_;
  const uint64_t step = std::min<uint64_t>(bytes, left);
  offset_ = step == left ? 0 : offset_ + step;
  next_ += step == left;
  return bytes - step;
}

void SendQueue::moved(size_t bytes) {
  SLIME_CHECK(bytes <= gathered_);
  blocked_ = bytes < gathered_;
  size_t of_begun = std::min(bytes, gathered_begun_);
  bytes -= of_begun;
  while (of_begun > 0) of_begun = advance(of_begun);
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
