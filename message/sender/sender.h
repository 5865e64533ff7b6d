// The sending end of a link. isend gives small messages to the EagerOutbox, and others to the
// TransferQueue when the CtsInbox has a receive for them. test counts completions.
//
// States of a request: free until isend takes it, active until test reports it done. While it is
// active, its stripes may be sent again over other rails. Thread: that of the link.
#pragma once

#include <vector>

#include "link/transfer_queue.h"
#include "message/sender/cts_inbox.h"
#include "message/sender/eager_outbox.h"

namespace slime {

class Sender final : public LinkEnd {
 public:
  // `comm`: of its requests. The link's inbox is a CTS inbox, and its outbox the image of an eager
  // inbox; see records.h.
  Sender(Comm& comm, Link& link, uint32_t eager_max);

  // As SendComm.
  Status isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
               Request** request);
  Status test(Request* request, bool* done, size_t* sizes);
  Status move();  // the link, and what waits for it
  bool has_requests() const { return free_.size() < kMostRequests; }
  // Whether this end can go without losing a message. A small message is done when its rail has
  // taken it, and can be sent again only while this exists.
  bool settled() { return eager_.settled(); }

 private:
  // A grouped receive takes up to kMaxReceives sends, and NCCL has up to kMaxRequests groups open.
  static constexpr size_t kMostRequests = size_t{kMaxRequests} * kMaxReceives;

  // LinkEnd
  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  OutboxPiece fence_record(const RailLife&) override { return {}; }
  Status on_both_fenced(const RailLife& life) override;

  Status start(const CtsInbox::Match& match, const void* data, size_t bytes,
               const MemoryRegion* region, Request** request);
  [[gnu::cold]] Status start_on_failed_link(size_t bytes, Request** request);
  [[gnu::cold]] Status fail_test_of_done();
  SendRequest* take_request(size_t bytes);
  void report_seen();
  void ask_for_cts();

  Link& link_;
  std::vector<SendRequest> requests_;
  std::vector<uint16_t> free_;
  EagerOutbox eager_;
  CtsInbox cts_;
  TransferQueue stripes_;
  uint64_t waiting_since_ns_ = 0;  // since when isend has found no receive; 0: it does not wait
  uint32_t eager_streak_ = 0;      // eager messages in a row; 0 after a request for a CTS
};

// Inline: mostly one poll has completed many requests, and only the first test has anything to
// move.
inline Status Sender::test(Request* request, bool* done, size_t* sizes) {
  *done = false;
  auto& mine = static_cast<SendRequest&>(*request);
  if (!mine.active) return fail_test_of_done();
  const bool nothing_to_move = mine.complete() && link_.rails().busy() == 0;
  const Status status = nothing_to_move ? Status::kOk : move();
  *done = mine.complete();
  if (*done) {  // also after a failure: a complete request stays complete
    if (sizes) sizes[0] = mine.bytes;
    mine.active = false;
    free_.push_back(mine.index);
    return Status::kOk;
  }
  if (status != Status::kOk) return status;
  return link_.check_deadline(mine.started_ns, "the completion of a send", mine.bytes);
}

}  // namespace slime
