// The queue pairs of a channel (lanes), where their completions come from (completions.h), and the
// works on them.
//
// Sends. Each chain of work requests is posted on one lane, and lanes take turns. The last request
// of a chain is signalled, and one in 32 of a longer chain: a completion stands for all before it
// on its lane. A lane's ring keeps what is told of each.
//
// Silent writes. That a NIC acknowledges a write does not say that it is visible in memory: nothing
// but a later message on its queue pair does (InfiniBand Architecture Specification, 9.5,
// "Transaction ordering"), and with relaxed ordering less than ever. A read behind the write does,
// as its answer does not pass what the NIC has written (PCI Express Base Specification,
// "Transaction Ordering", row B, column 2). So a lane reads eight bytes of the peer behind its
// silent writes, and each is kSent when a read that was posted after it has completed. One is under
// way at a time: it goes with a chain, or follows the one before it.
//
// Receives. A write with immediate consumes a receive work request of ours, which has no buffer:
// the bytes go where the write says. Four for each write that may be under way are posted on each
// lane, and given back in batches. Where a peer sends more than that before we poll, our NIC
// answers "receiver not ready" (RNR), and the peer's NIC tries again without end. The first receive
// of the first lane has a buffer, for the peer's hello.
//
// Invariants: reported <= done <= posted on each lane, and visible <= posted. Of all lanes
// together, done - reported is unreported_, and posted - reported is writes_ + reads_: as many as
// the channel's depth at most. The completion queue has a place for each work request that is
// posted, so it cannot overrun.
//
// Thread: that of the channel.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transports/channel_common.h"
#include "transports/rail.h"
#include "transports/verbs/completions.h"
#include "transports/verbs/device/nic.h"
#include "transports/verbs/queue_pair.h"
#include "transports/verbs/wire.h"
#include "transports/verbs/work_id.h"

namespace slime::verbs {

class VerbsPoller;
class VerbsRail;

inline constexpr uint32_t kInlineBytes = 128;  // asked for
inline constexpr uint32_t kReceives = 1024;    // per lane, at most
inline constexpr uint32_t kReceiveBatch = 64;  // given back with one call, at most

struct PostedWork {
  uint64_t cookie = 0;
  Opcode opcode = Opcode::kWriteWithImmediate;
};

// Positions of works on a lane begin here: they wrap soon, so that each test sees it.
inline constexpr uint32_t kFirstPosition = UINT32_MAX - 100;

// A queue pair and the works on it.
struct Lane {
  QueuePair pair;
  uint32_t first_psn = 0;
  std::vector<PostedWork> works;  // a ring
  uint32_t posted = kFirstPosition, done = kFirstPosition, reported = kFirstPosition;
  uint32_t unsignaled = 0;    // works since the last that asks for a completion
  uint32_t receives = 0;      // posted, and their completion not polled
  bool has_closed = false;    // the peer did
  bool reads_behind = false;  // a read behind silent writes is under way
  // `silent` is behind the newest chain with silent writes. Those before `visible`, which is never
  // less than `reported`, are visible.
  uint32_t silent = kFirstPosition, visible = kFirstPosition;
};

// What the peer lets us read: see "Silent writes".
struct Readable {
  uint64_t address = 0;
  uint32_t key = 0;
};

class Lanes {
 public:
  Lanes(VerbsRail& rail, const ChannelDepth& depth);

  // Queue pairs in INIT, with their receives. `poller`: nullptr, or the one that they are of.
  Result<void> open(const std::shared_ptr<const Port>& port, VerbsPoller* poller, uint64_t tag);
  void keep_first(size_t count) { lanes_.resize(count); }  // as many as the peer has
  // The NIC uses them no more when this returns.
  void destroy() { lanes_.clear(); }
  // What is left of a channel that closes; no lane is left here.
  ClosingPairs close();

  Lane& operator[](size_t lane) { return lanes_[lane]; }
  size_t size() const { return lanes_.size(); }
  void set_readable(const Readable& of_peer);  // before the first work
  std::span<Lane> all() { return lanes_; }
  const Completions& completions() const { return *completions_; }  // once it is open
  bool is_open() const { return completions_.has_value(); }
  Hellos& hellos() { return hellos_->value; }

  // Posts again as many batches as are used up. False, with errno: the NIC has not taken all.
  bool give_back_receives(Lane& lane);
  uint32_t outstanding() const { return writes_ + reads_; }  // works without kSent
  size_t count_that_fit(std::span<const Work> works) const;  // there are places for
  uint64_t undelivered() const;
  bool none_under_way();  // takes completions, and drops arrivals

  // Makes the works a chain for the next lane. Returns the index of the first that is not valid, or
  // their number; then post_chain() may follow.
  size_t chain(std::span<const Work> works);
  // 0, or an errno value. *taken: as of Channel::post().
  int post_chain(size_t works, size_t* taken);
  int post_hello();
  int post_keep_alive(size_t lane);

  // The work at this position is done, and all before it on its lane.
  void complete(const WorkId& id) { complete(lanes_[id.lane], id.position + 1); }
  // False: a work of a chain that the NIC took in part.
  bool is_posted(const WorkId& id) const {
    return static_cast<int32_t>(id.position - lanes_[id.lane].posted) < 0;
  }
  // Our NIC or the peer's has refused that work; those before it have been carried out.
  PostedWork refuse(const WorkId& id) {
    complete(lanes_[id.lane], id.position);
    return work_at(lanes_[id.lane], id.position);
  }
  // 0, or an errno value: another read behind silent writes could not be posted.
  int take_read_behind(const WorkId& id);
  // take_sent() would report some.
  bool has_sent() const { return std::ranges::any_of(lanes_, reports); }
  size_t take_sent(std::span<Done> done) { return unreported_ == 0 ? 0 : take_done(done); }

 private:
  bool post_receives(Lane& lane, uint32_t count, bool with_hello = false);
  Result<void> prepare(Lane& lane);
  bool prepare_work(const Work& work, Lane& lane, uint32_t position, size_t index);
  ibv_send_wr* read_behind(const Lane& lane, uint32_t end);
  PostedWork& work_at(Lane& lane, uint32_t position) const {
    return lane.works[position & (lane.works.size() - 1)];
  }
  static bool reports(const Lane& lane);
  WorkId id_of(WorkId::Kind kind, const Lane& lane, uint32_t position = 0) const {
    return {kind, index_of(lane), completions_->place(), position};
  }
  Result<void> open_completions(uint32_t places, VerbsPoller* poller, uint64_t tag);
  void complete(Lane& lane, uint32_t end);
  size_t take_done(std::span<Done> done);
  uint8_t index_of(const Lane& lane) const { return static_cast<uint8_t>(&lane - lanes_.data()); }

  VerbsRail& rail_;
  const ChannelDepth depth_;
  const uint32_t receives_, receive_batch_;  // of a lane
  std::optional<Completions> completions_;   // outlives the queue pairs, as the next
  std::unique_ptr<Registered<Hellos>> hellos_;
  std::vector<Lane> lanes_;
  size_t next_lane_ = 0;
  uint32_t writes_ = 0, reads_ = 0;  // works without kSent
  uint32_t unreported_ = 0;

  // One chain, made once; the data path fills in what differs.
  std::vector<ibv_send_wr> sends_;
  std::vector<ibv_sge> pieces_;
  uint32_t chained_reads_ = 0, chained_silent_ = 0;
  ibv_send_wr read_behind_ = {};
  ibv_sge read_behind_piece_ = {};
  std::array<ibv_recv_wr, kReceiveBatch> receive_chain_ = {};
};

}  // namespace slime::verbs
