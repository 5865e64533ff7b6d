// Ends the life of a rail that has failed, and keeps its works safe.
//
// The order of the steps makes it safe:
//
//   1. This end fences the channel: no write of the peer reaches memory over it any more.
//   2. It processes all arrivals that the channel has confirmed to the peer, because the peer will
//      not send those again.
//   3. It sends a notice (kFenceNotice), with a record of the stripes that arrived, over a rail
//      that is up, or over the lifeline.
//   4. When the peer's notice has come too, the user submits the missing works again.
//
// So no late write of the dead rail can land in memory that has been reused. A notice is sent again
// when the rail that carried it dies. When no rail is up any more, the link fails, unless it has a
// lifeline.
//
// Thread: that of the link. Its state is in the rails (LinkRail); this class has none.
#pragma once

#include <span>
#include <string>

#include "link/lifeline/control_path.h"
#include "link/link_end.h"

namespace slime {

// Processes the completions and arrivals of a channel; Link implements it.
class CompletionSink {
 public:
  virtual Status handle_completion(size_t rail, const Done& done) = 0;

 protected:
  ~CompletionSink() = default;
};

class Failover final : private WorkOwner {
 public:
  Failover(LinkRails& rails, ControlPath& path, CompletionSink& sink)
      : rails_(rails), path_(path), sink_(sink) {}

  // The rail must be up. Steps 1 to 3, and step 4 if the peer has fenced the rail already.
  Status fail_rail(size_t rail, Error why);
  // The peer has fenced the present life of this rail, which is up, kFenced or kDown.
  Status on_peer_fenced(size_t rail);
  // Text for a time-out error: the failed rails whose notice the peer has not answered. The log has
  // not named these rails yet.
  std::string unanswered_deaths();

  // Single steps of the end of a life, for Rejoin too.
  Status fence(size_t rail);
  Status take(size_t rail, std::span<const Done> done);  // what a poll of its channel has said
  void send_notice(size_t rail);
  void repeat_lost_notices();
  Status finish_fencing(size_t rail);  // kFenced -> kDown: both ends have fenced it
  // Names the cause for which it is down. True: the process has not warned of that one yet.
  bool begin_outage(size_t rail);

 private:
  // Of a notice; `rail`: the one that it is about.
  void on_done(uint32_t rail) override { rails_[rail].notice.under_way = false; }
  void on_lost(uint32_t rail) override { rails_[rail].notice.lost = true; }
  Status fail_last_rail(size_t rail, const Error& why);
  void report_down(size_t rail);

  LinkRails& rails_;
  ControlPath& path_;
  CompletionSink& sink_;
};

}  // namespace slime
