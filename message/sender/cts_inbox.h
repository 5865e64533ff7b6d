// The CTS records at the sender. It accepts them, and matches sends with them, strictly in the
// order in which the receives were posted.
//
// States of a CTS record
//   parked    it has overtaken others, and stays in its entry of the inbox
//   accepted  it was copied to a group, in the order of the sequences; sends may match it
//   passed    all of its receives have their message, or get it eagerly; the group is dropped
// What makes reuse safe: the receiver writes an entry again only when it knows that this end has
// accepted the CTS. A stripe for that CTS says so, and so does each eager message. If neither is
// sent for long, report_due() asks for a control work. Keys are read from the entry itself, which
// the receiver does not change until the receive is complete. All other fields are copied and
// checked, because the peer could write there at any time.
//
// Invariants: accepted (next_sequence) >= known to the receiver (reported). There are at most
// kMaxRequests groups, because the receiver has at most that many incomplete receives.
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "link/link_context.h"
#include "message/records.h"
#include "message/sender/eager_outbox.h"
#include "message/tag_counters.h"

namespace slime {

class CtsInbox {
 public:
  // A grouped receive that has been announced by CTS.
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
  // The oldest group that is not passed, if one of its receives takes the next message of this tag.
  Match match(int tag);
  bool any() const { return head_ != tail_; }
  // Counts a send of this tag, and returns the number of sends before it.
  uint32_t count_send(int tag) { return sent_.of(tag)++; }

  uint32_t next_sequence() const { return next_; }
  bool report_due() const { return next_ - reported_ > kMaxRequests / 2; }
  // The receiver will learn that all CTS below `sequence` have been accepted.
  void reported(uint32_t sequence) {
    if (static_cast<int32_t>(sequence - reported_) > 0) reported_ = sequence;
  }

  // For each rail.
  const uint64_t* remote_keys(uint32_t entry, uint32_t sub) const {
    return reinterpret_cast<const uint64_t*>(receive(entry, sub) + sizeof(CtsReceive));
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
  uint32_t next_ = 0;      // sequence of the next CTS
  uint32_t reported_ = 0;  // the receiver knows that all CTS below this one are accepted
  uint64_t parked_ = 0;    // entries whose CTS came too early, a bit each
  TagCounters sent_;
};

}  // namespace slime
