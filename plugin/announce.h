// What a user reads in the log at start.
#pragma once

#include <string>

#include "engine/fabric.h"

namespace slime::plugin {

// One summary line, and one with the NICs that were skipped, if any.
void announce(Fabric& fabric);
void announce_nothing(const std::string& reason);

// LL128 needs each 128-byte line to become visible in order. Where a device cannot promise that,
// NCCL is told through NCCL_PROTO, the only lever there is (NCCL reads it per communicator, after
// our init; src/graph/tuning.cc). A value that the user set stays.
void forbid_ll128_where_unsafe(Fabric& fabric);

// Whether a value of NCCL_PROTO lets NCCL pick a protocol: "ll128" or "simple". Values with one
// list per function (NCCL 2.24 and later, "allreduce:ll128;...") allow what they name at all.
bool allows_protocol(const std::string& proto, const char* name);

}  // namespace slime::plugin
