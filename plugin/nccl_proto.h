// NCCL_PROTO: which protocols NCCL may use, and what our rails cannot carry.
#pragma once

#include <string>

#include "engine/fabric.h"

namespace slime::plugin {

// A variable of the user's. nullptr: it is not set, or empty, which NCCL takes for not set.
const char* set_variable(const char* name);

// Whether a value of NCCL_PROTO lets NCCL pick a protocol: "ll128" or "simple". Values with one
// list per function (NCCL 2.24 and later, "allreduce:ll128;...") allow what they name at all.
bool allows_protocol(const std::string& proto, const char* name);

// LL128 needs each 128-byte line to become visible in order. Where a device cannot promise that,
// sets NCCL_PROTO, the only way to forbid it (NCCL reads it per communicator, after our init;
// src/graph/tuning.cc). A value that the user set stays.
void forbid_ll128_where_unsafe(Fabric& fabric);

}  // namespace slime::plugin
