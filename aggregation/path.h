// Where a Context's operations go: over the switch, or in one of the debugging modes.
#pragma once

#include <slime/aggregation.h>

#include "collnet/report.h"
#include "collnet/worker.h"

namespace slime::aggregation {

// Thread rules: one call at a time.
class Path {
 public:
  virtual ~Path() = default;
  // kAgain: Worker::kMaxOperations are outstanding. Tickets count up.
  virtual Status start(const Operation& operation, uint64_t* ticket) = 0;
  // Moves packets. Errors are for good: see failure().
  virtual Status test(uint64_t ticket, bool* done) = 0;
  virtual const Error& failure() const = 0;
  virtual uint64_t results() = 0;  // packets so far: whether anything moves
  virtual WorkerReport report() = 0;
};

}  // namespace slime::aggregation
