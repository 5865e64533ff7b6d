// The sending end of a link: pairs sends with the receiver's CTS, cuts them into stripes, counts
// their completions; sends small messages ahead of their CTS into the receiver's eager entries.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/comm.h"
#include "engine/comm_progress.h"
#include "engine/link/link.h"
#include "engine/link/link_parts.h"
#include "engine/link/stripes.h"
#include "engine/tag_counters.h"

namespace slime {

struct SendRequest final : Request {
  SendRequest(Comm* comm, uint16_t index_in) : Request(comm), index(index_in) {}

  const uint16_t index;
  bool active = false;
  bool eager = false;  // waits for its eager entry instead of stripes
  uint32_t generation = 0;
  const std::byte* data = nullptr;
  const MemoryRegion* region = nullptr;
  uint64_t bytes = 0;
  uint64_t started_ns = 0;
  StripePlan plan;
  DataImmediate target;  // entry, sub and generation at the receiver
  uint32_t cts_sequence = 0;
  uint64_t remote_address = 0, remote_offset = 0;  // see Work
  uint64_t open = 0;                               // stripes not known to be done, a bit each
  uint64_t unsent = 0;                             // of those: on no rail yet
  uint64_t lost = 0;                               // of those: were on a rail that died
  std::array<uint8_t, kMaxStripes> rail = {};      // where each stripe went
};

class SendCommImpl final : public SendComm, private LinkUser, private CommProgress {
 public:
  // A grouped receive takes up to kMaxReceives sends, and NCCL keeps kMaxRequests groups going.
  static constexpr size_t kPool = size_t{kMaxRequests} * kMaxReceives;

  // `inbox` is a CTS inbox, `outbox` an eager inbox; see records.h.
  SendCommImpl(Fabric& fabric, Device& device, LinkParts parts, RegisteredBuffer inbox,
               RegisteredBuffer outbox);
  ~SendCommImpl() override;

  Status isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
               Request** request) override;
  Status test(Request* request, bool* done, size_t* sizes) override;
  Device& device() const override { return link_.device(); }
  const Error& failure() const override { return link_.failure(); }
  std::string peer_name() const override { return link_.peer(); }
  const Link& link() const { return link_; }
  Status progress() override;
  // Whether no message can be lost any more by the end of this comm. A small message is done when
  // its rail has taken it, and is sent again only while the comm lives. If not, call progress().
  bool settled();

 private:
  // A grouped receive that the peer is ready for, in the order of its posting.
  struct Group {
    CtsHeader header;
    std::array<CtsReceive, kMaxReceives> receives;
  };
  struct Match {
    const Group* group = nullptr;
    uint32_t sub = 0;
  };

  // LinkUser
  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  bool on_sent(const WorkId& cookie, uint64_t* bytes) override;
  void fence_record(const RailLife&, size_t, Work*) override {}
  Status on_fenced(const RailLife& life) override;
  JoinRecordPlaces join_records(size_t rail) const override;
  void fill_probe(size_t rail, Work* work) const override;

  // CommProgress
  bool has_requests() const override { return free_.size() < kPool; }
  bool has_work() const override { return link_.has_work(); }
  void advance() override { (void)move(); }

  Status move();  // progress, for a call that has entered

  // send_match.cc: what the receiver is ready for
  Status on_cts(uint32_t immediate, uint64_t bytes);
  Status accept_cts(uint32_t entry);
  Status accept_parked();
  bool passed(const Group& group) const;
  void tell_seen();
  void ask_for_cts();
  Match match(int tag);
  void drop_passed();
  void drop_all_passed();
  const std::byte* cts_record(uint32_t entry) const {
    return inbox_.data() + entry * cts_entry_bytes(link_.rail_count());
  }
  const std::byte* cts_receive(uint32_t entry, uint32_t sub) const {
    return cts_record(entry) + sizeof(CtsHeader) + sub * cts_receive_bytes(link_.rail_count());
  }
  // Read where the peer wrote it: the entry stays as it is until this receive is complete.
  uint64_t remote_key(uint32_t entry, uint32_t sub, size_t rail) const {
    uint64_t key;
    std::memcpy(&key, cts_receive(entry, sub) + sizeof(CtsReceive) + rail * sizeof key, sizeof key);
    return key;
  }

  Status not_now();
  Status start(const Match& match, const void* data, size_t bytes, const MemoryRegion* region,
               Request** request);
  bool submit_stripes(SendRequest& request);
  void submit_stripe(SendRequest& request, uint32_t stripe, size_t rail);
  void submit_waiting();
  static bool had_arrived(const FenceRecord& record, const SendRequest& request, int stripe);
  SendRequest* take_request(const void* data, size_t bytes, const MemoryRegion* region);
  Status too_long(size_t bytes, const CtsReceive& entry);
  Status wait_for_receiver(size_t bytes);

  // send_eager.cc
  struct EagerBuffer {
    static constexpr uint8_t kNoRail = UINT8_MAX;  // never used
    uint32_t index = 0;
    uint32_t bytes = 0;             // header and payload
    uint16_t request = kNoRequest;  // that waits for the rail to take it
    uint8_t rail = kNoRail;
    bool open = false;  // its work is not done
  };
  static constexpr uint16_t kNoRequest = UINT16_MAX;
  bool eager_fits(size_t bytes, const MemoryRegion* region);
  void start_eager(const void* data, size_t bytes, int tag, Request** request);
  void submit_eager(uint32_t entry, bool again);
  void repeat_eager(size_t dead_rail);
  void finish_eager(EagerBuffer& eager);
  bool has_arrived(const EagerBuffer& eager) const {  // by the receiver's credits
    return static_cast<int32_t>(eager.index - eager_consumed_) < 0;
  }
  void settle();
  void return_credits(uint32_t consumed);

  RegisteredBuffer inbox_;  // written by the peer: CTS ring and fence records
  const Outbox outbox_;     // eager messages under way
  const uint32_t eager_max_;

  std::vector<SendRequest> requests_;
  std::vector<uint16_t> free_;

  // Requests with stripes on no rail yet, the oldest first, each once; and the bytes of those.
  std::array<uint16_t, kPool> waiting_;
  uint32_t waiting_head_ = 0, waiting_tail_ = 0;
  uint64_t waiting_bytes_ = 0;

  std::array<Group, kMaxRequests> groups_;
  uint32_t groups_head_ = 0, groups_tail_ = 0;
  uint32_t next_cts_ = 0;        // sequence expected next
  uint32_t told_ = 0;            // of those before it, how many the receiver knows to be taken in
  uint64_t parked_entries_ = 0;  // CTS that came too early, a bit per entry
  TagCounters sent_;
  uint64_t waiting_since_ns_ = 0;  // since when isend has had nobody to send to; 0: it has

  std::array<EagerBuffer, kEagerBuffers> eager_;
  uint32_t eager_sent_ = 0;
  uint32_t eager_consumed_ = 0;
  uint32_t eager_streak_ = 0;  // messages in a row that went eagerly; 0 once a CTS was asked for

  const bool settles_;  // before its end

  Link link_;  // last: gone before the memory it uses
};

}  // namespace slime
