// A time by which something must have happened, and the rule by which it counts as missed.
//
// The rule: a wait has timed out only if a look that began after its deadline found nothing. A
// process may be stopped past its deadline (a debugger, a busy machine) while what it waits for
// arrives. So it reads its sockets once more before it reports a time-out. A wait of the set-up is
// written as
//
//     const Deadline::Look look(deadline);
//     ... read the socket ...
//     if (nothing came && look.expired()) report the time-out
//
// Threads: one, the owner's.
#pragma once

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace slime {

class Deadline {
 public:
  Deadline(const Clock& clock, uint64_t after_ns) : clock_(&clock) { restart(after_ns); }

  void restart(uint64_t after_ns) {
    const uint64_t now_ns = clock_->now_ns();
    end_ns_ = now_ns + std::min(after_ns, std::numeric_limits<uint64_t>::max() - now_ns);
  }
  bool passed() const { return clock_->now_ns() >= end_ns_; }
  uint64_t end_ns() const { return end_ns_; }

  // One look at what is waited for. Made before it.
  class Look {
   public:
    explicit Look(const Deadline& deadline) : deadline_(deadline), late_(deadline.passed()) {}
    // Whether the deadline had passed when the look began. Asked again, because the look may have
    // achieved something that restarted the deadline.
    bool expired() const { return late_ && deadline_.passed(); }

   private:
    const Deadline& deadline_;
    const bool late_;
  };

 private:
  const Clock* clock_;
  uint64_t end_ns_ = 0;
};

}  // namespace slime
