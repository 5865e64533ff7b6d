// Brings a dead rail back to its link, over a new channel and with a new epoch.
//
//   active end                                passive end
//     opens a channel
//     kJoin, its address            -->         opens a channel, and connects it
//                                   <--   kJoin, its address
//     connects its channel
//     kJoined                      <-->   kJoined
//     the rail is up at an end that is connected and has the peer's kJoined, or a work of the peer
//     over the new channel
//
// All messages travel over the rails that are up, or over the lifeline. A try that fails ends like
// a life of the rail: each end fences its channel and sends a notice (kFenceNotice), and when both
// ends have fenced, another try may begin. So if one end gives up while the other takes the rail
// for up, the notice corrects the other end. No step needs clocks that agree.
//
// What makes reuse of records safe: a try begins, or is granted, only while no rail is kFenced and
// no record of this end for this rail is under way. So no record of an earlier life can overwrite a
// newer one.
//
// Thread: that of the link. Its state is in the rails (LinkRail, RailJoin).
#pragma once

#include <string>

#include "link/failover.h"
#include "link/liveness.h"

namespace slime {

class Rejoin final : private WorkOwner {
 public:
  Rejoin(LinkRails& rails, ControlPath& path, Failover& failover, RailLiveness& liveness)
      : rails_(rails), path_(path), failover_(failover), liveness_(liveness) {}

  // Called while some rail is not up: begins tries, and continues those under way.
  Status progress();
  // The lifeline has opened: tries wait only for the least pause.
  void hurry();
  // The peer sent a message about a life of a rail: kFenceNotice, kJoin, kJoined or kRetry.
  Status on_message(ControlOp op, const RailLife& life);
  uint64_t rejoins() const { return rejoins_; }  // rails that have returned so far

 private:
  uint64_t least_pause_ns() const;
  bool may_try(const LinkRail& rail);
  // Of a message of RailJoin; `part` is the rail and which of them.
  void on_done(uint32_t part) override { message(part).under_way = false; }
  void on_lost(uint32_t part) override { message(part) = {false, true}; }
  RailMessage& message(uint32_t part) { return rails_[part / 4].join.messages[part % 4]; }
  void send(ControlOp op, RailJoin::Message which, size_t rail, const OutboxPiece& piece = {});
  void repeat_lost_message(size_t rail);
  void begin(size_t rail);
  void grant(size_t rail);
  bool open_channel(size_t rail);
  void send_request(size_t rail);
  Status on_fence_notice(const RailLife& life);
  Status on_join(const RailLife& life);
  Status on_skipped(const RailLife& life);
  void end_skipped(size_t rail);
  void try_soon(size_t rail);
  void may_work_again(size_t rail);
  void warn_of_lasting(size_t rail);
  Status step(size_t rail);
  Status look_for_first_work(size_t rail);
  Status give_up(size_t rail, const std::string& why);
  void bring_up(size_t rail);

  LinkRails& rails_;
  ControlPath& path_;
  Failover& failover_;
  RailLiveness& liveness_;
  uint64_t rejoins_ = 0;
};

}  // namespace slime
