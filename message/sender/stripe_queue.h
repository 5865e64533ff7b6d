// The queue of stripes: each stripe of a link passes through here on its way to a rail. A stripe
// waits until a rail has room for it. Stripes of older messages go first, because the receiver's
// caller waits for the oldest message. docs/striping.md has the rules.
//
// Invariant: a request with unsent stripes is in the ring exactly once, and waiting_bytes_ is the
// sum of the bytes of unsent stripes. Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>

#include "link/link.h"
#include "message/sender/cts_inbox.h"
#include "message/sender/send_request.h"

namespace slime {

class StripeQueue {
 public:
  // A grouped receive takes up to kMaxReceives sends, and NCCL has up to kMaxRequests groups open.
  static constexpr size_t kMostRequests = size_t{kMaxRequests} * kMaxReceives;

  StripeQueue(Link& link, const CtsInbox& cts) : link_(link), cts_(cts) {}

  bool any() const { return head_ != tail_; }
  // Begins a request, whose stripes are all open and unsent.
  void start(SendRequest& request);
  void submit_waiting();
  // The rail died. Stripes that are not in the receiver's record wait again, in front of the
  // others, because they are older than most of them.
  void requeue_lost(SendRequest& request, size_t dead_rail, const FenceRecord& record);

 private:
  bool submit(SendRequest& request);
  void submit_stripe(SendRequest& request, uint32_t stripe, size_t rail);

  Link& link_;
  const CtsInbox& cts_;
  std::array<SendRequest*, kMostRequests> waiting_;
  uint32_t head_ = 0, tail_ = 0;
  uint64_t waiting_bytes_ = 0;
};

}  // namespace slime
