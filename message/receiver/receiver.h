// The receiving end of a link. It announces receives by CTS, counts stripes until each receive is
// complete, and copies eager messages to the receive that they belong to. After the link has
// failed, it still hands out messages that had arrived, also to receives that are posted later.
//
// ReceiveRequests has the states of a receive, FlushRequests those of a flush. Thread: that of the
// link.
#pragma once

#include "message/receiver/cts_outbox.h"
#include "message/receiver/eager_inbox.h"
#include "message/receiver/flush_requests.h"
#include "message/receiver/receive_requests.h"

namespace slime {

class Receiver final : public LinkEnd {
 public:
  // `comm`: of its requests. The link's inbox is an eager inbox, and its outbox the image of a CTS
  // inbox; see records.h.
  Receiver(Comm& comm, Link& link, uint32_t eager_max);
  // Not called: receives are into host memory only.
  Result<void> open_flushes(Comm& comm);

  // As RecvComm.
  Status irecv(std::span<const Receive> receives, bool may_complete_early, Request** request);
  Status test(Request* request, bool* done, size_t* sizes);
  bool has_unexpected(int tag) { return eager_.has_tag(tag); }
  Status flush(const void* data, const MemoryRegion* region, Request** request);
  Status move();  // the link, and what waits for it
  bool has_requests() const { return requests_.outstanding() > 0 || flushes_.any_open(); }

 private:
  // LinkEnd
  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  OutboxPiece fence_record(const RailLife& life) override;
  Status on_both_fenced(const RailLife& life) override;

  bool all_arrived(std::span<const Receive> receives) const;
  Status on_stripe(size_t rail, const DataImmediate& immediate, uint64_t bytes);
  Status on_eager(uint32_t immediate, uint64_t bytes);
  Status take_early_messages(ReceiveRequest& request);
  Status deliver(uint32_t buffer, ReceiveRequest& request, ReceivePart& part);
  Status refuse(uint32_t buffer, uint64_t capacity);
  Status test_flush(FlushRequest& request, bool* done);
  [[gnu::cold]] Status fail_test_of_done();

  Link& link_;
  const uint32_t eager_max_;
  ReceiveRequests requests_;
  EagerInbox eager_;
  CtsOutbox cts_;
  FlushRequests flushes_;
  bool arrives_unpolled_ = true;  // RailCaps::arrives_unpolled of all rails
};

// Inline as Sender::test.
inline Status Receiver::test(Request* request, bool* done, size_t* sizes) {
  *done = false;
  if (FlushRequest* const flush = flushes_.find(request)) return test_flush(*flush, done);
  auto& mine = static_cast<ReceiveRequest&>(*request);
  if (!mine.active || mine.returned) return fail_test_of_done();
  const bool nothing_to_move = mine.incomplete == 0 && link_.rails().busy() == 0;
  const Status status = nothing_to_move ? Status::kOk : move();
  *done = mine.incomplete == 0 || (mine.early && !mine.cts_open && status == Status::kOk);
  if (*done) {  // also after a failure: a complete request stays complete
    for (uint32_t i = 0; sizes && i < mine.count; ++i) sizes[i] = mine.parts[i].bytes;
    requests_.give_back(mine);
    return Status::kOk;
  }
  if (status != Status::kOk) return status;
  return link_.check_deadline(mine.started_ns, mine.waits_for(), mine.parts[0].capacity);
}

}  // namespace slime
