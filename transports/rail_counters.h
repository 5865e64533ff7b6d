// Counters of one rail. Written by the thread that owns the channel, read by any.
#pragma once

#include "base/metrics.h"

namespace slime {

// X(name, help): the table from which readers, JSON and the documentation are made.
#define SLIME_RAIL_COUNTERS(X)                                               \
  X(works, "work requests posted")                                           \
  X(bytes_sent, "payload bytes posted")                                      \
  X(bytes_received, "payload bytes that arrived")                            \
  X(arrivals, "work requests of the peer that arrived")                      \
  X(refused, "work requests of the peer for memory that it may not use")     \
  X(doorbells, "calls that made the NIC or the kernel look at posted works") \
  X(futile_posts, "doorbells that moved nothing because the queue was full") \
  X(polls, "polls for completions")                                          \
  X(empty_polls, "polls that found nothing")                                 \
  X(deferred, "times the watermark held a batch back")                       \
  X(retries, "works posted again on this rail after another rail failed")    \
  X(queue_depth_max, "most works that ever waited in the posting queue")

struct alignas(64) RailCounters {
#define SLIME_FIELD(name, help) Counter name;
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
};

// A plain copy, for sums and reports.
struct RailTotals {
#define SLIME_FIELD(name, help) uint64_t name = 0;
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  void add(const RailTotals& other) {
    const uint64_t depth = queue_depth_max;
#define SLIME_FIELD(name, help) name += other.name;
    SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
    queue_depth_max = depth > other.queue_depth_max ? depth : other.queue_depth_max;
  }
};

inline RailTotals snapshot(const RailCounters& counters) {
  RailTotals totals;
#define SLIME_FIELD(name, help) totals.name = counters.name.get();
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  return totals;
}

}  // namespace slime
