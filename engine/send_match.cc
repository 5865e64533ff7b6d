// The sender's view of what the receiver is ready for: CTS in, matches out.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/send_comm.h"

namespace slime {

namespace {

bool is_sound(const CtsHeader& header, uint32_t entry) {
  return header.entry == entry && header.count >= 1 && header.count <= kMaxReceives &&
         header.generation <= kGenerationMask;
}

}  // namespace

Status SendCommImpl::on_cts(uint32_t immediate, uint64_t bytes) {
  const uint32_t entry = cts_entry_of(immediate);
  CtsHeader header;
  std::memcpy(&header, cts_record(entry), sizeof header);
  const size_t channels = link_.rail_count();
  const bool sound = is_sound(header, entry) &&
                     bytes == sizeof header + header.count * cts_receive_bytes(channels);
  const uint32_t sequence = widen(next_cts_, immediate & kSequenceMask, kSequenceMask);
  const auto ahead = static_cast<int32_t>(sequence - next_cts_);
  if (ahead < 0) return Status::kOk;  // repeated after a rail died
  if (!sound || header.sequence != sequence || ahead >= static_cast<int32_t>(kCtsEntries)) {
    return link_.fail_protocol("a malformed CTS");
  }
  if (ahead > 0) {
    parked_entries_ |= uint64_t{1} << entry;
    return Status::kOk;
  }
  if (const Status status = accept_cts(entry); status != Status::kOk) return status;
  if (const Status status = accept_parked(); status != Status::kOk) return status;
  if (next_cts_ - told_ > kMaxRequests / 2) tell_seen();
  return Status::kOk;
}

// The receiver may write a CTS entry again once it knows that we have taken the CTS in. A stripe
// sent to it says so, and so does each eager message; where neither does for long, this does.
void SendCommImpl::tell_seen() {
  told_ = next_cts_;
  link_.submit_control(ControlOp::kSeen, next_cts_);
}

// After eager messages in a row the receiver may hold its CTS back. Where it does not, this costs a
// work, but only the first time that a message waits after them. It is posted at once.
void SendCommImpl::ask_for_cts() {
  if (eager_streak_ < kEagerStreak || groups_head_ != groups_tail_ || link_.up_count() == 0) return;
  eager_streak_ = 0;
  link_.submit_control(ControlOp::kWanted, next_cts_);
  (void)link_.progress();  // the next call reports a failure
}

Status SendCommImpl::accept_cts(uint32_t entry) {
  if (groups_tail_ - groups_head_ == kMaxRequests) drop_all_passed();
  if (groups_tail_ - groups_head_ == kMaxRequests) return link_.fail_protocol("too many CTS");
  Group& group = groups_[groups_tail_ % kMaxRequests];
  const std::byte* record = cts_record(entry);
  std::memcpy(&group.header, record, sizeof group.header);
  // The record is the peer's to write: what was checked is checked again on the copy.
  if (!is_sound(group.header, entry)) {
    return link_.fail_protocol("a malformed CTS");
  }
  for (uint32_t sub = 0; sub < group.header.count; ++sub) {
    std::memcpy(&group.receives[sub], cts_receive(entry, sub), sizeof group.receives[sub]);
  }
  return_credits(group.header.eager_consumed);
  ++groups_tail_;
  ++next_cts_;
  return Status::kOk;
}

Status SendCommImpl::accept_parked() {
  for (bool found = true; found && parked_entries_ != 0;) {
    found = false;
    for (uint64_t left = parked_entries_; left; left &= left - 1) {
      const auto entry = static_cast<uint32_t>(std::countr_zero(left));
      CtsHeader header;
      std::memcpy(&header, cts_record(entry), sizeof header);
      if (header.sequence != next_cts_) continue;
      parked_entries_ &= ~(uint64_t{1} << entry);
      if (const Status status = accept_cts(entry); status != Status::kOk) return status;
      found = true;
    }
  }
  return Status::kOk;
}

// Strictly in posting order: only the oldest group with a free receive is looked at, and a tag
// chooses within it.
SendCommImpl::Match SendCommImpl::match(int tag) {
  drop_passed();
  if (groups_head_ == groups_tail_) return {};
  const Group& group = groups_[groups_head_ % kMaxRequests];
  for (uint32_t sub = 0; sub < group.header.count; ++sub) {
    const CtsReceive& entry = group.receives[sub];
    if (entry.tag == tag && entry.ordinal == sent_.peek(tag)) return {&group, sub};
  }
  return {};
}

// A receive whose ordinal has been passed has its message, or will get it eagerly.
bool SendCommImpl::passed(const Group& group) const {
  const auto* const end = group.receives.data() + group.header.count;
  return std::all_of(group.receives.data(), end, [this](const CtsReceive& entry) {
    return static_cast<int32_t>(entry.ordinal - sent_.peek(entry.tag)) < 0;
  });
}

void SendCommImpl::drop_passed() {
  while (groups_head_ != groups_tail_ && passed(groups_[groups_head_ % kMaxRequests])) {
    ++groups_head_;
  }
}

// Also behind one that waits: eager messages pass receives that were posted later. The receiver has
// at most kMaxRequests receives that are not complete, so there is room for all of them.
void SendCommImpl::drop_all_passed() {
  const uint32_t end = groups_tail_;
  groups_tail_ = groups_head_;
  for (uint32_t i = groups_head_; i != end; ++i) {
    const Group& group = groups_[i % kMaxRequests];
    if (!passed(group)) groups_[groups_tail_++ % kMaxRequests] = group;
  }
}

}  // namespace slime
