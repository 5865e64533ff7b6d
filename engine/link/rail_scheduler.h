// What the rails of a link deliver, and what follows from it: which rail takes a stripe, how long
// stripes are, which rail is tried again, of which one a person should know. rail_rate.h measures,
// rail_choice.h chooses; docs/striping.md has the rules.
//
// Thread: that of the link.
#pragma once

#include "engine/link/liveness.h"
#include "engine/link/stripes.h"

namespace slime {

class RailScheduler {
 public:
  RailScheduler(LinkRails& rails, RailLiveness& liveness);

  // All rails take works of so many bytes.
  void limit_work(uint64_t bytes) { limits_.most = std::min(limits_.most, bytes); }
  const StripeLimits& stripe_limits() const { return limits_; }
  // The rail for a stripe, the first of `waiting` bytes; kNoRail: let it wait. `whole`: it is a
  // message of its own.
  size_t choose_rail_for_stripe(uint64_t bytes, uint64_t waiting, bool whole);
  // After the completions of a poll.
  void observe(size_t rail);
  bool overdue_due() const { return rails_.clock().now_ns >= overdue_due_ns_; }
  void check_overdue();
  // `quiet_ns`: since when nothing has happened on the link, besides probes.
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
  bool stripes_wait_ = false;    // for a rail with room
  bool had_stripes_ = false;     // since rails were last judged
};

}  // namespace slime
