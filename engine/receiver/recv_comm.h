// The receiving end of a link. It announces receives by CTS, counts stripes until each receive is
// complete, and copies eager messages to the receive that they belong to. After the link has
// failed, it still hands out messages that had arrived, also to receives that are posted later.
//
// ReceiveRequests has the states of a receive, Flushes those of a flush. Threads: see LinkComm.
#pragma once

#include "engine/link_comm.h"
#include "engine/receiver/cts_outbox.h"
#include "engine/receiver/eager_inbox.h"
#include "engine/receiver/flushes.h"
#include "engine/receiver/receive_requests.h"

namespace slime {

class RecvCommImpl final : public LinkComm<RecvComm> {
 public:
  // `inbox` is an eager inbox, `outbox` the image of a CTS inbox; see records.h.
  RecvCommImpl(Fabric& fabric, Device& device, LinkParts parts, RegisteredBuffer inbox,
               RegisteredBuffer outbox);
  ~RecvCommImpl() override { leave(); }

  Status irecv(std::span<const Receive> receives, bool may_complete_early,
               Request** request) override;
  Status test(Request* request, bool* done, size_t* sizes) override;
  bool has_unexpected(int tag) override;
  Status flush(const void* data, const MemoryRegion* region, Request** request) override;

 private:
  // LinkEnd
  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  bool on_sent(const WorkId& work, uint64_t* bytes) override;
  void fence_record(const RailLife& life, size_t via, Work* work) override;
  Status on_both_fenced(const RailLife& life) override;
  JoinRecordPlaces join_records(size_t rail) const override;
  void fill_probe(size_t, Work*) const override {}

  // CommProgress
  bool has_requests() const override { return requests_.outstanding() > 0 || flushes_.any_open(); }
  Status move() override;

  bool all_arrived(std::span<const Receive> receives) const;
  Status on_stripe(size_t rail, const DataImmediate& immediate, uint64_t bytes);
  Status on_eager(uint32_t immediate, uint64_t bytes);
  Status take_early_messages(ReceiveRequest& request);
  Status deliver(uint32_t buffer, ReceiveRequest& request, ReceivePart& part);
  Status refuse(uint32_t buffer, uint64_t capacity);
  Status test_flush(FlushRequest& request, bool* done);

  ReceiveRequests requests_;
  EagerInbox eager_;
  CtsOutbox cts_;
  Flushes flushes_;
  bool arrives_unpolled_ = true;  // RailCaps::arrives_unpolled of all rails
};

}  // namespace slime
