// The receiving end of a link: announces receives by CTS, counts stripes until each is complete,
// and hands eager messages that came early to the receive they belong to. What has arrived is
// handed out also after the link has failed, to receives that are posted then.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "engine/comm.h"
#include "engine/comm_progress.h"
#include "engine/flushes.h"
#include "engine/link/link.h"
#include "engine/link/link_parts.h"
#include "engine/link/records.h"
#include "engine/tag_counters.h"

namespace slime {

// One receive of a group.
struct ReceivePart {
  std::byte* data = nullptr;
  uint64_t capacity = 0;
  const MemoryRegion* region = nullptr;  // not after its keys went out: it may be deregistered
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

  const uint16_t index;   // of its CTS entry too
  bool active = false;    // in use: by the caller, or by works that are still open
  bool returned = false;  // test has said done: only works of ours keep it
  bool cts_open = false;  // the work that carries its CTS is not done
  bool held = false;      // its CTS is held back
  bool early = false;     // done as soon as the CTS is out: the GPU watches the flags itself
  uint8_t cts_rail = 0;
  uint32_t generation = 0;
  uint32_t sequence = 0;
  uint32_t cts_bytes = 0;  // 0: none was needed
  uint32_t count = 0;
  uint32_t incomplete = 0;
  uint64_t started_ns = 0;
  std::array<ReceivePart, kMaxReceives> parts;
};

class RecvCommImpl final : public RecvComm, private LinkUser, private CommProgress {
 public:
  // `inbox` is an eager inbox, `outbox` a CTS inbox; see records.h.
  RecvCommImpl(Fabric& fabric, Device& device, LinkParts parts, RegisteredBuffer inbox,
               RegisteredBuffer outbox);
  ~RecvCommImpl() override { leave(); }

  Status irecv(std::span<const Receive> receives, bool may_complete_early,
               Request** request) override;
  Status test(Request* request, bool* done, size_t* sizes) override;
  Device& device() const override { return link_.device(); }
  const Error& failure() const override { return link_.failure(); }
  std::string peer_name() const override { return link_.peer(); }
  const Link& link() const { return link_; }
  Status progress() override;
  bool has_unexpected(int tag) override;
  Status flush(const void* data, const MemoryRegion* region, Request** request) override;

 private:
  // LinkUser
  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  bool on_sent(const WorkId& cookie, uint64_t* bytes) override;
  void fence_record(const RailLife& life, size_t bearer, Work* work) override;
  Status on_fenced(const RailLife& life) override;
  JoinRecordPlaces join_records(size_t rail) const override;
  void fill_probe(size_t, Work*) const override {}

  // CommProgress
  bool has_requests() const override { return outstanding_ > 0 || flushes_.any_open(); }
  bool has_work() const override { return link_.has_work(); }
  void advance() override { (void)move(); }

  Status move();  // progress, for a call that has entered

  bool has_room() { return link_.up_count() == 0 || link_.room(link_.pick(0)) > 0; }
  ReceiveRequest* take_request(std::span<const Receive> receives);
  Status on_stripe(size_t rail, const DataImmediate& immediate, uint64_t bytes);
  Status test_flush(FlushRequest& request, bool* done);
  void write_cts(ReceiveRequest& request);
  void submit_cts(ReceiveRequest& request, bool again = false);
  bool seen(const ReceiveRequest& request) const {
    return static_cast<int32_t>(cts_seen_ - request.sequence) > 0;
  }
  void retire_if_idle(ReceiveRequest& request);

  // recv_announce.cc
  void announce(ReceiveRequest& request);
  void announce_overdue();
  void announce_held();
  void unhold(ReceiveRequest& request);
  bool may_hold() const;
  Status on_wanted(uint32_t cts);

  void on_seen(uint32_t cts_seen);
  static void complete(ReceiveRequest& request, ReceivePart& part);
  static const char* waits_for(const ReceiveRequest& request);

  // recv_eager.cc
  Status on_eager(uint32_t immediate, uint64_t bytes);
  bool all_arrived(std::span<const Receive> receives) const;
  Status take_early_messages(ReceiveRequest& request);
  Status take(uint32_t buffer, ReceiveRequest& request, ReceivePart& part);
  bool find_receive(const EagerHeader& header, ReceiveRequest** request, ReceivePart** part);
  void report_credits();

  RegisteredBuffer inbox_;  // eager buffers, written by the peer
  const Outbox outbox_;     // CTS records and fence records under way
  const uint32_t eager_max_;
  bool arrives_unpolled_ = true;

  std::vector<ReceiveRequest> requests_;
  std::vector<uint16_t> free_;
  uint32_t outstanding_ = 0;  // requests that the caller holds
  uint64_t unretired_ = 0;    // requests that were returned and are still in use: a bit each
  uint32_t next_cts_ = 0;
  uint32_t cts_seen_ = 0;  // CTS that the sender is known to have taken in
  TagCounters posted_;

  std::array<EagerHeader, kEagerBuffers>
      early_;                      // copies, so that the peer cannot change them later
  uint32_t early_buffers_ = 0;     // arrived, not yet taken: a bit per buffer
  uint32_t consumed_buffers_ = 0;  // taken, but an older one is not: a bit per buffer
  uint32_t consumed_ = 0;          // all eager messages below this index are taken
  uint32_t reported_ = 0;          // what the sender has been told of it

  std::array<uint16_t, kMaxRequests> held_;  // requests whose CTS is held back, oldest first
  uint32_t held_count_ = 0;
  uint32_t eager_streak_ = 0;  // messages in a row that came eagerly
  uint64_t last_eager_ns_ = 0;
  Flushes flushes_;

  uint32_t wanted_ = 0;  // CTS below this one are not held back: the sender waits for them

  Link link_;  // last: gone before the memory it uses
};

}  // namespace slime
