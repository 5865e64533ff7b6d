// The sending end of a link. isend gives small messages to the EagerOutbox, and others to the
// StripeQueue when the CtsInbox has a receive for them. test counts completions.
//
// States of a request: free until isend takes it, active until test reports it done. While it is
// active, its stripes may be sent again over other rails. Its generation identifies late
// completions of an earlier use. Threads: see LinkComm.
#pragma once

#include <vector>

#include "engine/link_comm.h"
#include "engine/sender/cts_inbox.h"
#include "engine/sender/eager_outbox.h"
#include "engine/sender/stripe_queue.h"

namespace slime {

class SendCommImpl final : public LinkComm<SendComm> {
 public:
  // `inbox` is a CTS inbox, `outbox` the image of an eager inbox; see records.h.
  SendCommImpl(Fabric& fabric, Device& device, LinkParts parts, RegisteredBuffer inbox,
               RegisteredBuffer outbox);
  ~SendCommImpl() override;

  Status isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
               Request** request) override;
  Status test(Request* request, bool* done, size_t* sizes) override;
  // Whether this comm can end without losing a message. A small message is done when its rail has
  // taken it, and can be sent again only while the comm exists. If false, call progress().
  bool settled() { return eager_.settled(); }

 private:
  // LinkEnd
  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  bool on_sent(const WorkId& work, uint64_t* bytes) override;
  void fence_record(const RailLife&, size_t, Work*) override {}
  Status on_both_fenced(const RailLife& life) override;
  JoinRecordPlaces join_records(size_t rail) const override;
  void fill_probe(size_t rail, Work* work) const override;

  // CommProgress
  bool has_requests() const override { return free_.size() < StripeQueue::kMostRequests; }
  Status move() override;

  Status start(const CtsInbox::Match& match, const void* data, size_t bytes,
               const MemoryRegion* region, Request** request);
  [[gnu::cold]] Status start_on_failed_link(size_t bytes, Request** request);
  SendRequest* take_request(const void* data, size_t bytes, const MemoryRegion* region);
  void report_seen();
  void ask_for_cts();
  void drain_before_close();

  std::vector<SendRequest> requests_;
  std::vector<uint16_t> free_;
  EagerOutbox eager_;
  CtsInbox cts_;
  StripeQueue stripes_;
  uint64_t waiting_since_ns_ = 0;  // since when isend has found no receive; 0: it does not wait
  uint32_t eager_streak_ = 0;      // eager messages in a row; 0 after a request for a CTS
};

}  // namespace slime
