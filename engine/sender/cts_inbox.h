// What the receiver is ready for: CTS come in, and sends are matched with them, strictly in the
// order in which the receives were posted.
//
// A CTS is taken in in the order of its sequence; one that overtook others is parked in its entry
// of the inbox. The receiver writes an entry again only once it knows that we have taken the CTS
// in: a stripe that is sent for it says so, and so does each eager message; where neither does for
// long, report_due() asks for a control work. Keys are read in the entry, which stays as it is
// until the receive is complete; all else is copied and checked, for the peer may write there at
// any time.
//
// Invariants: taken in (next_sequence) >= known to the receiver (reported); at most kMaxRequests
// groups, because the receiver has at most that many receives that are not complete.
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "engine/link/link_context.h"
#include "engine/link/records.h"
#include "engine/sender/eager_outbox.h"
#include "engine/tag_counters.h"

namespace slime {

class CtsInbox {
 public:
  // A grouped receive that the peer is ready for.
  struct Group {
    CtsHeader header;
    std::array<CtsReceive, kMaxReceives> receives;
  };
  struct Match {
    const Group* group = nullptr;
    uint32_t sub = 0;
  };

  CtsInbox(LinkContext& context, EagerOutbox& eager, const std::byte* records, size_t channels)
      : context_(context), eager_(eager), records_(records), channels_(channels) {}

  Status on_cts(uint32_t immediate, uint64_t bytes);
  // The oldest group with a free receive, if that wants a message of this tag.
  Match match(int tag);
  bool any() const { return head_ != tail_; }
  // Counts a send of this tag, and returns how many were before it.
  uint32_t count_send(int tag) { return sent_.of(tag)++; }

  uint32_t next_sequence() const { return next_; }
  bool report_due() const { return next_ - reported_ > kMaxRequests / 2; }
  // The receiver learns that those below this one have been taken in.
  void reported(uint32_t sequence) {
    if (static_cast<int32_t>(sequence - reported_) > 0) reported_ = sequence;
  }

  uint64_t remote_key(uint32_t entry, uint32_t sub, size_t rail) const {
    uint64_t key;
    std::memcpy(&key, receive(entry, sub) + sizeof(CtsReceive) + rail * sizeof key, sizeof key);
    return key;
  }

 private:
  const std::byte* record(uint32_t entry) const {
    return records_ + entry * cts_entry_bytes(channels_);
  }
  const std::byte* receive(uint32_t entry, uint32_t sub) const {
    return record(entry) + sizeof(CtsHeader) + sub * cts_receive_bytes(channels_);
  }
  Status accept(uint32_t entry);
  Status accept_parked();
  bool passed(const Group& group) const;
  void drop_passed();
  void drop_all_passed();

  LinkContext& context_;
  EagerOutbox& eager_;
  const std::byte* const records_;
  const size_t channels_;
  std::array<Group, kMaxRequests> groups_;
  uint32_t head_ = 0, tail_ = 0;
  uint32_t next_ = 0;      // sequence expected next
  uint32_t reported_ = 0;  // of those before it, how many the receiver knows to be taken in
  uint64_t parked_ = 0;    // entries whose CTS came too early, a bit each
  TagCounters sent_;
};

}  // namespace slime
