// The deadline of a wait, and the rule for when the wait has timed out.
//
// The rule: a wait has timed out only if a check that began after its deadline found nothing. A
// process may be stopped past its deadline (a debugger, a busy machine) while the data that it
// waits for arrives. So it reads its sockets once more before it reports a time-out. Code of the
// set-up waits in this form:
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

  // One check of a wait. Construct it before the check begins.
  class Look {
   public:
    explicit Look(const Deadline& deadline) : deadline_(deadline), late_(deadline.passed()) {}
    // Whether the deadline had passed when the check began, and has not been restarted since: the
    // check may have found something.
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
