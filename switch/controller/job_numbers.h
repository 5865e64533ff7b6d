// Numbers and generations of jobs. A packet names its job by both, so a pair must not come back
// while a packet of its last owner may still be under way.
//
// States of a number: free or in use. Invariants: its generation changes when it is taken, and by
// advance(); two changes of one number are at least times::kJobNumberSpacing apart. take() goes
// around in a circle, so a number that was given back is used again as late as possible. Thread
// rules: one thread, the controller's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"

namespace slime::net {

// The token of a new generation of a job: random, and not 0, because that is what registers of a
// switch in P4 have before any job has used them.
Result<uint32_t> draw_token();

struct JobNumber {
  uint16_t job = 0;
  uint8_t generation = 0;
};

class JobNumbers {
 public:
  // Numbers first..first + count - 1. `seed` differs between runs of the daemon: the jobs of an
  // earlier run, whose workers may still send, had other generations.
  JobNumbers(uint16_t first, uint16_t count, uint64_t seed);

  // The number that has been free longest. Nothing: all are in use, or were until just now.
  std::optional<JobNumber> take(uint64_t now_ns);
  void give_back(uint16_t job) { entry(job).used = false; }
  // The next generation of a number in use. Nothing: too soon.
  std::optional<uint8_t> advance(uint16_t job, uint64_t now_ns);
  uint64_t wait_ns(uint16_t job, uint64_t now_ns) const;  // until advance() may work

 private:
  struct Entry {
    uint64_t changed_ns = 0;
    uint8_t generation = 0;
    bool used = false;
    bool fresh = true;  // changed_ns means nothing yet
  };
  Entry& entry(uint16_t job) { return entries_[job - first_]; }

  const uint16_t first_;
  std::vector<Entry> entries_;
  size_t next_ = 0;
};

}  // namespace slime::net
