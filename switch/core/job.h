// A job: one group of contributors on a switch, with its own slots.
#pragma once

#include <optional>
#include <vector>

#include "base/net/socket.h"
#include "switch/core/counters.h"
#include "switch/protocol/sap.h"

namespace slime::net {

// Where a leaf sends its sums. The job has the same number and generation at the parent.
struct Parent {
  SocketAddress address;
  uint8_t child = 0;  // number of this switch among the parent's children
};

struct JobSpec {
  uint16_t job = 0;
  uint8_t generation = 0;
  uint32_t token = 0;      // of this generation, in every packet
  uint32_t slots = 0;      // of the whole job; shard i of n has slots i, i + n, i + 2n, ...
  uint32_t max_lanes = 0;  // 32-bit words per packet
  uint32_t formats = sap::kKnownFormats;  // a bit each
  // Rail by rail: child c on rail r of n children is address r * n + c. Contributions count only
  // from the address of their child on the rail of their slot (sap::rail_of).
  std::vector<SocketAddress> children;
  uint32_t rails = 1;  // local addresses of each child
  bool children_are_switches = false;
  std::optional<Parent> parent;  // absent: this switch is the root

  size_t child_count() const { return children.size() / rails; }
};

// X(name, help)
#define SLIME_JOB_COUNTERS(X)                                                      \
  X(contributions, "contributions that were folded")                               \
  X(rounds, "rounds completed at this switch")                                     \
  X(results_again, "results or partial sums sent again because one was lost")      \
  X(duplicates, "contributions that came again before their round was complete")   \
  X(stale, "packets of rounds that are over")                                      \
  X(queries, "queries answered")                                                   \
  X(parent_results, "results of the parent passed on")                             \
  X(parent_words, "refusals and answers of the parent passed on")                  \
  X(rejected_generation, "packets of another generation")                          \
  X(wrong_token, "packets with another token than the job's; dropped, no answer")  \
  X(rejected_source, "packets from an address that is not bound to their child")   \
  X(rejected_slot, "packets for a slot that the job has not, or not on this port") \
  X(rejected_shape, "packets with lanes, format or op that do not fit")

SLIME_DECLARE_COUNTERS(JobCounters, JobTotals, SLIME_JOB_COUNTERS)

}  // namespace slime::net
