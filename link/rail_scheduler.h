// Schedules the stripes of a link. It chooses a rail for each stripe and the length of stripes,
// probes rails that are not used, and warns of a slow one. rail_rate.h measures, rail_choice.h
// chooses; docs/striping.md has the rules.
//
// Thread: that of the link. The measurements are in the rails (RailRate).
#pragma once

#include "link/liveness.h"
#include "link/stripes.h"

namespace slime {

class RailScheduler {
 public:
  RailScheduler(LinkRails& rails, RailLiveness& liveness);

  // Set-up: some rail takes works of so many bytes at most.
  void limit_work(uint64_t bytes) { limits_.most = std::min(limits_.most, bytes); }
  const StripeLimits& stripe_limits() const { return limits_; }
  // The rail for a stripe, the first of `waiting` bytes; kNoRail: the stripe waits. `whole`: the
  // stripe is the whole transfer.
  size_t choose_rail_for_stripe(uint64_t bytes, uint64_t waiting, bool whole);
  // The same of a read, which needs a place among the reads too.
  size_t choose_rail_for_read(uint64_t bytes, uint64_t waiting, bool whole);
  // Called after the completions of a poll: updates the measurements of this rail.
  void observe(size_t rail);
  bool overdue_due() const { return rails_.clock().now_ns >= overdue_due_ns_; }
  void check_overdue();
  // `quiet_ns`: for how long nothing but probes has happened on the link.
  void probe_unused_rails(uint64_t quiet_ns);

 private:
  void limit_stripes();
  void warn_of_slow_rail();
  double expected_share(const LinkRail& rail);
  bool recently_measured(const LinkRail& rail) const;

  LinkRails& rails_;
  RailLiveness& liveness_;
  StripeLimits limits_;
  uint64_t overdue_due_ns_ = 0;
  double least_latency_ns_ = 0;  // of the rails; 0: not known
  bool stripes_wait_ = false;    // the last stripe found no rail with room
  bool had_stripes_ = false;     // since the last probe_unused_rails()
};

}  // namespace slime
