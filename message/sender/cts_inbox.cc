#include "message/sender/cts_inbox.h"

#include <algorithm>
#include <bit>

namespace slime {

namespace {

bool is_sound(const CtsHeader& header, uint32_t entry) {
  return header.entry == entry && header.count >= 1 && header.count <= kMaxReceives &&
         header.generation <= kGenerationMask;
}

}  // namespace

Status CtsInbox::on_cts(uint32_t immediate, uint64_t bytes) {
  const uint32_t entry = cts_entry_of(immediate);
  CtsHeader header;
  std::memcpy(&header, record(entry), sizeof header);
  const bool sound = is_sound(header, entry) &&
                     bytes == sizeof header + header.count * cts_receive_bytes(channels_);
  const uint32_t sequence = widen(next_, immediate & kSequenceMask, kSequenceMask);
  const auto ahead = static_cast<int32_t>(sequence - next_);
  if (ahead < 0) return Status::kOk;  // repeated after a rail died
  if (!sound || header.sequence != sequence || ahead >= static_cast<int32_t>(kCtsEntries)) {
    return context_.fail_protocol("a malformed CTS");
  }
  if (ahead > 0) {
    parked_ |= uint64_t{1} << entry;
    return Status::kOk;
  }
  if (const Status status = accept(entry); status != Status::kOk) return status;
  return accept_parked();
}

Status CtsInbox::accept(uint32_t entry) {
  if (tail_ - head_ == kMaxRequests) drop_all_passed();
  if (tail_ - head_ == kMaxRequests) return context_.fail_protocol("too many CTS");
  Group& group = groups_[tail_ % kMaxRequests];
  std::memcpy(&group.header, record(entry), sizeof group.header);
  // The peer could have written the record since on_cts() checked it, so the copy is checked again.
  if (!is_sound(group.header, entry)) {
    return context_.fail_protocol("a malformed CTS");
  }
  for (uint32_t sub = 0; sub < group.header.count; ++sub) {
    std::memcpy(&group.receives[sub], receive(entry, sub), sizeof group.receives[sub]);
  }
  eager_.return_credits(group.header.eager_consumed);
  ++tail_;
  ++next_;
  SLIME_CHECK(tail_ - head_ <= kMaxRequests);
  return Status::kOk;
}

// Accepts parked records while the next one in the order of the sequences is among them.
Status CtsInbox::accept_parked() {
  for (bool found = true; found && parked_ != 0;) {
    found = false;
    for (uint64_t left = parked_; left; left &= left - 1) {
      const auto entry = static_cast<uint32_t>(std::countr_zero(left));
      CtsHeader header;
      std::memcpy(&header, record(entry), sizeof header);
      if (header.sequence != next_) continue;
      parked_ &= ~(uint64_t{1} << entry);
      if (const Status status = accept(entry); status != Status::kOk) return status;
      found = true;
    }
  }
  return Status::kOk;
}

// Receives are used strictly in posting order: only the oldest group that is not passed may match,
// and the tag chooses a receive within it.
CtsInbox::Match CtsInbox::match(int tag) {
  drop_passed();
  if (head_ == tail_) return {};
  const Group& group = groups_[head_ % kMaxRequests];
  for (uint32_t sub = 0; sub < group.header.count; ++sub) {
    const CtsReceive& receive = group.receives[sub];
    if (receive.tag == tag && receive.ordinal == sent_.peek(tag)) return {&group, sub};
  }
  return {};
}

// The sends of each receive's tag have gone past its ordinal: it has its message, or gets it
// eagerly.
bool CtsInbox::passed(const Group& group) const {
  const auto* const end = group.receives.data() + group.header.count;
  return std::all_of(group.receives.data(), end, [this](const CtsReceive& receive) {
    return static_cast<int32_t>(receive.ordinal - sent_.peek(receive.tag)) < 0;
  });
}

void CtsInbox::drop_passed() {
  while (head_ != tail_ && passed(groups_[head_ % kMaxRequests])) {
    ++head_;
  }
}

// Drops passed groups everywhere, also behind one that waits, because eager messages may complete
// receives that were posted later. This always makes room: the receiver has at most kMaxRequests
// incomplete receives.
void CtsInbox::drop_all_passed() {
  const uint32_t end = tail_;
  tail_ = head_;
  for (uint32_t i = head_; i != end; ++i) {
    const Group& group = groups_[i % kMaxRequests];
    if (!passed(group)) groups_[tail_++ % kMaxRequests] = group;
  }
}

}  // namespace slime
