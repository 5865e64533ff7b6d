// Counters of one shard's socket. What the packets were is counted in switch/core.
#pragma once

#include "base/metrics.h"

namespace slime::net {

// X(name, help)
#define SLIME_IO_COUNTERS(X)                                                      \
  X(batches, "receive calls that brought packets")                                \
  X(receive_calls, "system calls that asked for packets")                         \
  X(send_calls, "system calls that sent packets")                                 \
  X(packets_in, "packets received")                                               \
  X(packets_out, "packets sent")                                                  \
  X(bytes_in, "bytes received, without UDP's header")                             \
  X(bytes_out, "bytes sent, without UDP's header")                                \
  X(truncated, "packets longer than any that is known; malformed too")            \
  X(send_drops, "packets that the kernel refused to send; they are asked again")  \
  X(segmented, "of those sent, packets that shared their way through the kernel") \
  X(early_sends, "answers sent before the batch ended as their slot was used again")

struct alignas(64) IoCounters {
#define SLIME_FIELD(name, help) Counter name;
  SLIME_IO_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
};

struct IoTotals {
#define SLIME_FIELD(name, help) uint64_t name = 0;
  SLIME_IO_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  void add(const IoCounters& counters) {
#define SLIME_FIELD(name, help) name += counters.name.get();
    SLIME_IO_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  }
};

}  // namespace slime::net
