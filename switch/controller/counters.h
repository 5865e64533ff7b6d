// What the control plane has done, for operators.
#pragma once

#include "base/metrics.h"

namespace slime::net {

// X(name, help)
#define SLIME_CONTROL_COUNTERS(X)                                                      \
  X(requests, "requests carried out or refused")                                       \
  X(jobs_created, "jobs created")                                                      \
  X(jobs_refused, "jobs refused")                                                      \
  X(trees_created, "jobs created as the root of a tree")                               \
  X(trees_failed, "trees of switches that got no job")                                 \
  X(parent_failures, "questions to the parent that got no answer")                     \
  X(jobs_closed, "jobs closed by their workers")                                       \
  X(jobs_expired, "jobs whose lease ran out")                                          \
  X(fences, "generations ended")                                                       \
  X(driver_failures, "calls to the switch that failed")                                \
  X(connections, "control connections accepted")                                       \
  X(connections_refused, "control connections refused or reset, all places are taken") \
  X(connections_late, "control connections ended because a deadline passed")           \
  X(unauthorized, "control connections ended for a wrong key, or none")                \
  X(forbidden, "requests of tenants for what is another's, or operators'")             \
  X(replayed, "control connections ended for a request out of sequence")               \
  X(malformed, "control connections ended for bytes that are no request")

struct ControlCounters {
#define SLIME_FIELD(name, help) Counter name;
  SLIME_CONTROL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
};

}  // namespace slime::net
