// NCCL_PROTO: the protocols that NCCL may use, and the one that some rails cannot carry.
#pragma once

#include <string>

#include "devices/devices.h"

namespace slime::plugin {

// The value of an environment variable. nullptr: it is not set, or empty, which NCCL treats alike.
const char* set_variable(const char* name);

// Whether a value of NCCL_PROTO lets NCCL pick a protocol: "ll128" or "simple". Values with one
// list per function (NCCL 2.24 and later, "allreduce:ll128;...") allow every protocol that they
// name.
bool allows_protocol(const std::string& proto, const char* name);

// LL128 needs each 128-byte line to become visible in order. If a device cannot guarantee that,
// this sets NCCL_PROTO to forbid LL128. There is no other way (NCCL reads it per communicator,
// after our init; src/graph/tuning.cc). A value that the user has set is kept.
void forbid_ll128_where_unsafe(Devices& devices);

}  // namespace slime::plugin
