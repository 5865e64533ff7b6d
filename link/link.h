// All rails between two endpoints as one link. It polls the rails, runs completions, and processes
// the peer's control works about rails.
//
// Its parts: LinkRails (posting, and the choice of a rail for small works), RailScheduler (measures
// the rails and chooses one for each stripe), RailLiveness (finds silent rails), PeerWatch (finds a
// silent peer), Failover (ends a rail's life), Rejoin (brings a rail back), Lifeline (a connection
// beside the rails when none is left), ControlPath (over which of these control works travel),
// LinkContext (settings, and the failure of the link).
// Every arrival and completion passes through handle_completion().
//
// States: the link works until its last rail fails (with a lifeline: until none has returned in
// time), a deadline passes, or the peer breaks the protocol; then it has failed for good
// (LinkContext). rail/rail_state.h has the states of each rail.
//
// Failover: both ends fence a failed rail before anything that may have been lost is sent again.
// Each end closes its own channel and then sends a notice (kFenceNotice) over a surviving rail or
// the lifeline.
// Works of the dead rail are repeated elsewhere only when both ends have fenced it. After that the
// active end tries to bring the rail back over a new channel, until it succeeds or the link ends.
//
// Threads: those of its owner, one at a time. Every wait has a deadline: rail_timeout for a silent
// rail, some seconds for a try to bring a rail back, lifeline_seconds for a link without a rail,
// request_timeout for a request, answer_timeout for a sign of the peer's process.
#pragma once

#include <array>
#include <string>

#include "link/peer_watch.h"
#include "link/rail_scheduler.h"
#include "link/rejoin.h"

namespace slime {

class Link final : private CompletionSink {
 public:
  Link(Devices& devices, Device& device, LinkParts parts);
  void serve(LinkEnd& user) { context_.set_user(user); }  // before the first progress()

  LinkRails& rails() { return rails_; }
  const LinkRails& rails() const { return rails_; }
  const LinkMemory& memory() const { return memory_; }
  LinkContext& context() { return context_; }
  const LinkContext& context() const { return context_; }
  RailScheduler& scheduler() { return scheduler_; }
  Status status() const { return context_.status(); }
  // The peer has dialed again for this link; the stream replaces an older one. Thread: that of the
  // link.
  void take_lifeline(std::unique_ptr<LifelineStream> stream) {
    lifeline_.take(std::move(stream), rails_.clock().polled_ns);
  }
  bool has_delivered(size_t rail) { return liveness_.has_delivered(rail); }
  uint64_t rejoins() const { return rejoin_.rejoins(); }
  // Works are queued or in flight, a rail may return, or the peer waits for answers beside them.
  bool has_work() const {
    return rails_.up_count() < rails_.count() || rails_.busy() != 0 || !lifeline_.idle();
  }

  // A rail has carried works since its last probe that nobody confirms: progress() will send one.
  bool has_unproven_rail() const;

  // On every rail that is up: posts works that may leave now, polls, runs completions.
  Status progress();
  // For a link whose owner has pollers (LinkOwner::poller): they name it, by its tag, when
  // progress() has something to do. False: it has already, or a rail has no poller. Call it when
  // progress() has found nothing. Silence, lifelines and rails that return need progress() all the
  // same, ten times a second while has_work().
  bool arm();
  void disarm();
  // Another value whenever a rail has sent or got something.
  uint64_t traffic() const;
  // Ends the life of a rail that is up, so that no work of it touches memory of this end from now
  // on, nor of the peer when it has the notice. The rail returns.
  Status fence_rail(size_t rail, const char* why);
  // The link can do without it until it returns.
  bool may_lose_rail() const { return lifeline_.enabled(); }
  // Posts works that were submitted since the poll of progress().
  void post_more();
  // Fails the link when nothing has happened on it for the request time-out, or when the peer's
  // process does not answer for the answer time-out.
  Status check_deadline(uint64_t started_ns, const char* waits_for, uint64_t bytes);

 private:
  void add_rail(LinkChannel channel);
  void warm_up();
  Status handle_completion(size_t rail, const Done& done) override;
  void take_sent(size_t rail, const Done& done);
  Status take_refused(size_t rail, const Done& done);
  Status take_control(size_t rail, uint32_t immediate);
  uint32_t rails_to_look_at();
  Status progress_rail(size_t rail);
  Status poll_rail(size_t rail);
  Status watch_rails();
  Status progress_lifeline();

  LinkContext context_;
  const LinkMemory memory_;  // before the rails, which use it
  LinkRails rails_;
  RailLiveness liveness_;
  RailScheduler scheduler_;
  PeerWatch peer_watch_;
  Lifeline lifeline_;
  ControlPath path_;
  Failover failover_;
  Rejoin rejoin_;
  uint32_t hot_ = 0;           // rails with recent arrivals, a bit each
  size_t next_cold_ = 0;       // the rail whose turn it is to be polled although nothing is due
  uint64_t last_activity_ns_;  // of works other than probes and their answers
  std::array<Done, 64> done_;  // results of poll; a member so that no call has to clear it
};

}  // namespace slime
