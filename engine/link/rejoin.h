// How a dead rail returns to its link, over a new channel and with a new epoch.
//
//   active end                                passive end
//     opens a channel
//     kJoin, its address            -->         opens a channel, and connects it
//                                   <--   kJoin, its address
//     connects its channel
//     kJoined                      <-->   kJoined
//     each end: connected, and the peer is too: the rail is up
//
// All this travels over the rails that live. A try that fails ends like a life of the rail: each
// end fences its channel and says so (kFenced), and when both have, another try may begin. So an
// end that gave up and one that thinks that the rail is up cannot both be right for long, without
// any agreement about clocks.
//
// A try begins, and is granted, only while no rail is kFenced and no record of ours for this rail
// is under way: then nothing that was sent for an earlier life can overwrite a newer record.
//
// Thread: that of the link. State between calls is in the rails (LinkRail, RailJoin).
#pragma once

#include <string>

#include "engine/link/failover.h"
#include "engine/link/liveness.h"

namespace slime {

class Rejoin {
 public:
  Rejoin(LinkRails& rails, LinkEnd& user, Failover& failover, RailLiveness& liveness)
      : rails_(rails), user_(user), failover_(failover), liveness_(liveness) {}

  // While some rail is not up: begins tries, and continues those under way.
  Status progress();
  // What the peer says of a life of a rail: kFenced, kJoin, kJoined, kRetry.
  Status on_message(ControlOp op, const RailLife& life);
  // A control work about a rail has been confirmed.
  void on_sent(size_t via, uint64_t work);
  uint64_t rejoins() const { return rejoins_; }  // rails that have returned so far

 private:
  uint64_t least_pause_ns() const;
  bool may_try(const LinkRail& rail);
  RailMessage send(ControlOp op, size_t rail);
  void repeat_lost_messages(size_t rail);
  void begin(size_t rail);
  void grant(size_t rail);
  bool open_channel(size_t rail);
  void send_request(size_t rail);
  Status on_fence_notice(const RailLife& life);
  Status on_join(const RailLife& life);
  Status on_skipped(const RailLife& life);
  void end_skipped(size_t rail);
  void try_soon(size_t rail);
  void carrier_returned(size_t rail);
  Status step(size_t rail);
  Status give_up(size_t rail, const std::string& why);
  void bring_up(size_t rail);

  LinkRails& rails_;
  LinkEnd& user_;
  Failover& failover_;
  RailLiveness& liveness_;
  uint64_t rejoins_ = 0;
};

}  // namespace slime
