// All rails between two endpoints as one link: polls them, runs completions, and takes in what the
// peer says of its rails.
//
// Its parts: LinkRails (which rail takes a work, and posting), RailScheduler (what rails deliver),
// RailLiveness (whether they live), Failover (their death), Rejoin (their return), LinkContext (the
// ends, and the failure of the link). What arrives or completes passes through handle_completion().
//
// A rail that fails is fenced at both ends before anything that may have been lost is sent again:
// each end closes its own channel and then tells the other so over a surviving rail (kFenced). Only
// when both have done so are the works of the dead rail repeated elsewhere. After that the active
// end tries to get the rail back over a new channel, again and again while the link lives.
// link_rail.h has the states.
//
// Threads: as a comm, one at a time. Every wait has a deadline: a silent rail rail_timeout, a try
// to get one back some seconds, a request request_timeout.
#pragma once

#include <array>
#include <string>

#include "engine/link/rail_scheduler.h"
#include "engine/link/rejoin.h"

namespace slime {

class Link final : private CompletionSink {
 public:
  Link(Fabric& fabric, Device& device, std::string peer, bool active, LinkEnd& user,
       int traffic_class = kNoTrafficClass);

  // Set-up: channels in the order both ends agreed on.
  void add_rail(LinkChannel channel);
  void warm_up();

  LinkRails& rails() { return rails_; }
  const LinkRails& rails() const { return rails_; }
  LinkContext& context() { return context_; }
  const LinkContext& context() const { return context_; }
  RailScheduler& scheduler() { return scheduler_; }
  Status status() const { return context_.status(); }
  bool has_delivered(size_t rail) { return liveness_.has_delivered(rail); }
  uint64_t rejoins() const { return rejoin_.rejoins(); }
  // Works that are queued or in flight, or rails that may return.
  bool has_work() const { return rails_.up_count() < rails_.count() || rails_.busy() != 0; }

  // Polls, runs completions, posts what the rules let out, on every rail that is up.
  Status progress();
  // Posts what was submitted since the poll of progress().
  void post_more();
  // Fails the link when nothing has happened on it for the request time-out.
  Status check_deadline(uint64_t started_ns, const char* waits_for, uint64_t bytes);

 private:
  Status handle_completion(size_t rail, const Done& done) override;
  void take_sent(size_t rail, const Done& done);
  bool control_sent(size_t rail, const WorkId& work, uint64_t* bytes);
  Status take_control(size_t rail, uint32_t immediate);
  uint32_t rails_to_look_at();
  Status progress_rail(size_t rail);
  Status poll_rail(size_t rail);
  Status watch_rails();

  LinkContext context_;
  LinkEnd& user_;
  LinkRails rails_;
  RailLiveness liveness_;
  RailScheduler scheduler_;
  Failover failover_;
  Rejoin rejoin_;
  uint32_t hot_ = 0;      // rails on which something arrived lately, a bit each
  size_t next_cold_ = 0;  // the others are looked at by turns
  uint64_t last_activity_ns_;
  std::array<Done, 64> done_;  // what poll returned; here so that no call has to clear it
};

}  // namespace slime
