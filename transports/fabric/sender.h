// The works of this end of a channel, from post() until poll() has returned them as kSent.
//
// States of a work
//   waiting     post() has taken it, and the provider was busy
//   under way   the provider has it (window.h)
// The provider is given works in the order of post(): none passes one that waits.
//
// Invariant: waiting works and the places of the window in use are send_queue_depth at most.
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "transports/fabric/endpoint.h"
#include "transports/fabric/window.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

inline constexpr uint32_t kSendQueueDepth = 256;  // of a channel, at most
// Works that FI_MORE may hold back in a row: fewer than any provider can stage.
inline constexpr size_t kMostHeldBack = 16;

// The peer, as its hello describes it.
struct Peer {
  fi_addr_t address = FI_ADDR_UNSPEC;
  // Memory that any channel of its rail may write into: see FabricRail::Scratch.
  uint64_t scratch_address = 0, scratch_key = 0;
  bool wants_confirmations = false;
};

class Sender {
 public:
  // `endpoint`: of the channel, which closes it only when nothing is posted any more.
  Sender(FabricRail& rail, const Endpoint& endpoint, bool confirmed);

  void set_peer(const Peer& peer) { peer_ = peer; }  // before the first post

  size_t room() const { return window_.room() - waiting_.size(); }
  bool is_valid(const Work& work) const;

  // Posts valid works, at most room(). 0: all are under way or wait. Otherwise the code with which
  // the provider refused works[*taken]; those before it are never kSent.
  long post(std::span<const Work> works, size_t* taken);
  // Posts what waits, as far as the provider takes it. Otherwise as post(), for first_waiting().
  long post_waiting();
  bool has_waiting() const { return !waiting_.empty(); }
  const Work& first_waiting() const { return waiting_.front(); }
  // The first write of the channel, into the peer's scratch memory.
  long post_warm_up(fi_context2* context);

  Window& window() { return window_; }
  uint64_t undelivered() const { return window_.incomplete_count() + waiting_.size(); }

 private:
  long write(const Work& work, bool more);
  long write(iovec piece, void* description, const fi_rma_iov& target, void* context, uint64_t data,
             uint64_t flags);

  FabricRail& rail_;
  const Endpoint& endpoint_;
  Peer peer_;
  Window window_;
  std::deque<Work> waiting_;
};

}  // namespace slime::fabric
