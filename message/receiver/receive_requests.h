// The receives of a comm. Each request has its own entry among the CTS records.
//
// States of a request
//   free       take() may use it; neither end refers to it
//   active     the caller has it (outstanding), and its parts are being filled
//   returned   test has reported it done, but the work that carries its CTS is open, or the sender
//              may still read the CTS. Eager messages can complete a receive while its CTS is on
//              the way, and the record must stay until the sender has read it.
// What makes reuse safe: a returned request becomes free when the sender is known to have read its
// CTS (stripes, eager headers and control works say so), or when the link has failed. Its
// generation identifies a late stripe of an earlier use.
//
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "link/link_context.h"
#include "link/rail/work_slots.h"
#include "message/comm.h"
#include "message/records.h"
#include "message/tag_counters.h"

namespace slime {

// One receive of a group.
struct ReceivePart {
  std::byte* data = nullptr;
  uint64_t capacity = 0;
  const MemoryRegion* region = nullptr;  // used until the CTS is written; later it may be gone
  int32_t tag = 0;
  uint32_t ordinal = 0;
  uint64_t bytes = 0;    // arrived so far
  uint64_t arrived = 0;  // a bit per stripe
  uint32_t stripes = 0;  // 0: not known yet
  bool complete = false;
  bool in_device = false;
};

struct ReceiveRequest final : Request {
  ReceiveRequest(Comm* comm, uint16_t index_in) : Request(comm), index(index_in) {}

  // Its CTS has been sent, so stripes for it may come.
  bool announced() const { return active && cts_bytes > 0; }
  void complete(ReceivePart& part) {
    SLIME_CHECK(!part.complete && incomplete > 0);
    part.complete = true;
    --incomplete;
  }
  ReceivePart* find(int32_t tag, uint32_t ordinal);  // nullptr: it does not wait for that message
  const char* waits_for() const;

  const uint16_t index;   // of its CTS entry too
  bool active = false;    // not free
  bool returned = false;  // test has reported it done
  bool cts_open = false;  // the work that carries its CTS is not done
  bool held = false;      // its CTS is held back (CtsOutbox)
  bool early = false;     // done as soon as the CTS is sent: the GPU watches the flags itself
  uint8_t cts_rail = 0;
  uint32_t hold = 0;  // its position among the held CTS
  uint32_t generation = 0;
  uint32_t sequence = 0;
  uint32_t cts_bytes = 0;  // 0: none was sent
  uint32_t count = 0;
  uint32_t incomplete = 0;
  uint64_t started_ns = 0;
  std::array<ReceivePart, kMaxReceives> parts;
};

class ReceiveRequests final : public WorkOwner {
 public:
  ReceiveRequests(Comm* comm, const LinkContext& link);

  bool any_free() const { return outstanding_ < kMaxRequests && !free_.empty(); }
  uint32_t outstanding() const { return outstanding_; }  // requests that the caller holds
  ReceiveRequest* take(std::span<const Receive> receives, uint64_t now_ns);
  // The ordinal that the next receive of this tag will get.
  uint32_t next_ordinal(int32_t tag) const { return posted_.peek(tag); }
  std::vector<ReceiveRequest>& all() { return requests_; }
  ReceiveRequest& operator[](size_t index) { return requests_[index]; }
  // Finds the receive of a message; looks into `likely` first, which may be nullptr. False: it is
  // not posted yet.
  bool find(int32_t tag, uint32_t ordinal, ReceiveRequest* likely, ReceiveRequest** request,
            ReceivePart** part);

  void give_back(ReceiveRequest& request);  // the caller's test has reported it done
  void retire_if_idle(ReceiveRequest& request) {
    if (request.returned && request.incomplete == 0) retire(request);
  }
  bool seen(const ReceiveRequest& request) const {
    return static_cast<int32_t>(cts_seen_ - request.sequence) > 0;
  }
  uint32_t cts_seen() const { return cts_seen_; }
  // The sender has read so many CTS. Inline, because each stripe calls it and most bring no news.
  void on_seen(uint32_t cts_seen) {
    if (static_cast<int32_t>(cts_seen - cts_seen_) <= 0) return;
    cts_seen_ = cts_seen;
    if (unretired_ != 0) retire_seen();
  }

 private:
  // Of the work that carries a CTS. CtsOutbox sends it again, if the sender may not have read it.
  void on_done(uint32_t index) override {
    requests_[index].cts_open = false;
    retire_if_idle(requests_[index]);
  }
  void on_lost(uint32_t) override {}
  void retire(ReceiveRequest& request);
  void retire_seen();

  const LinkContext& link_;
  std::vector<ReceiveRequest> requests_;
  std::vector<uint16_t> free_;
  uint32_t outstanding_ = 0;
  uint64_t unretired_ = 0;  // requests that are returned and not free, a bit each
  uint32_t cts_seen_ = 0;   // number of CTS that the sender is known to have read
  TagCounters posted_;
};

}  // namespace slime
