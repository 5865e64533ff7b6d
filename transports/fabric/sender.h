// The works of this end of a channel, from post() until poll() has returned them as kSent.
//
// States of a work
//   waiting     post() has taken it, and the provider was busy
//   under way   the provider has it (window.h)
//   unseen      a silent write: the peer's NIC has acknowledged it, and may still hold its bytes
// The provider is given works in the order of post(): none passes one that waits.
//
// A read of the peer's scratch memory that is posted after an acknowledgement comes behind what the
// peer's NIC had written then (rail.h, Flusher, says why). So silent writes are kSent when such a
// read behind them is complete. One is under way at a time, for all that were unseen when it was
// posted.
//
// Invariants: waiting writes and the places in use of their window are ChannelDepth::writes at
// most, and those of reads ChannelDepth::reads; the read behind is beside them. behind_ is 0 while
// it is not under way.
//
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "transports/channel_common.h"
#include "transports/fabric/endpoint.h"
#include "transports/fabric/window.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

inline constexpr uint32_t kSendQueueDepth = 256;  // of a channel, at most
inline constexpr uint32_t kReadDepth = 64;        // RailCaps::max_outstanding_reads
// Works that FI_MORE may hold back in a row: fewer than any provider can stage.
inline constexpr size_t kMostHeldBack = 16;

// The peer, as its hello describes it.
struct Peer {
  fi_addr_t address = FI_ADDR_UNSPEC;
  // Memory that any channel of its rail may write into and read: see FabricRail::Scratch.
  uint64_t scratch_address = 0, scratch_key = 0;
  bool wants_confirmations = false;
};

class Sender {
 public:
  // `endpoint`: of the channel, which closes it only when nothing is posted any more.
  Sender(FabricRail& rail, const Endpoint& endpoint, const ChannelDepth& depth, bool confirmed);

  void set_peer(const Peer& peer) { peer_ = peer; }  // before the first post

  size_t count_that_fit(std::span<const Work> works) const;
  bool is_valid(const Work& work) const;

  // Posts valid works that fit. 0: all are under way or wait. Otherwise the code with which the
  // provider refused works[*taken]; those before it are never kSent.
  long post(std::span<const Work> works, size_t* taken);
  // Posts what waits, as far as the provider takes it. Otherwise as post(), for first_waiting().
  long post_waiting();
  bool has_waiting() const { return !waiting_.empty(); }
  const Work& first_waiting() const { return waiting_.front(); }
  // The first write of the channel, into the peer's scratch memory.
  long post_warm_up(fi_context2* context);
  // Posts a read behind unseen writes, if none is under way and the provider takes it. Otherwise
  // the code with which the provider refused it.
  long post_behind();

  // What a completion with this context ends. False: nothing of this channel.
  bool complete(void* context);
  // This read, or silent write unless `by_this_end`, was refused. Nothing happens for others.
  void refuse(void* context, bool by_this_end);
  // What poll() may return as kSent or kRefused, each once.
  size_t take(std::span<Done> done);

  Window& writes() { return writes_; }
  // Works, and a read behind, that the provider has not completed.
  uint64_t incomplete_count() const {
    return writes_.incomplete_count() + reads_.incomplete_count() + (behind_ > 0 ? 1 : 0);
  }
  uint64_t undelivered() const {
    return writes_.incomplete_count() + writes_.unseen() + reads_.incomplete_count() +
           waiting_.size();
  }

 private:
  // One piece at each end.
  struct Request {
    iovec here = {};
    void* description = nullptr;
    fi_rma_iov there = {};
    void* context = nullptr;
  };
  long post_one(const Work& work, bool more);
  long write(const Request& request, uint64_t data, uint64_t flags);
  long read(const Request& request);
  Window& window_of(const Work& work) { return work.opcode == Opcode::kRead ? reads_ : writes_; }
  fi_rma_iov scratch_of_peer() const;  // its piece for warm-ups and reads behind

  FabricRail& rail_;
  const Endpoint& endpoint_;
  Peer peer_;
  Window writes_, reads_;
  std::deque<Work> waiting_;
  size_t behind_ = 0;  // unseen writes that the read behind under way covers
  fi_context2 behind_context_ = {};
};

}  // namespace slime::fabric
