// A send, from isend until test reports it done.
#pragma once

#include <cstdint>

#include "link/transfer.h"
#include "message/comm.h"
#include "message/immediate.h"

namespace slime {

// States: free (active is false), open, done. It is open while `held` is set or its transfer is not
// done. Thread: that of the comm.
struct SendRequest final : Request, Transfer {
  SendRequest(Comm* comm, uint16_t index_in) : Request(comm), index(index_in) {}

  bool complete() const { return !held && done(); }

  const uint16_t index;
  bool active = false;
  bool held = false;  // eager: the rail has not taken it; or the link has failed, and it stays open
  uint64_t bytes = 0;
  uint64_t started_ns = 0;
  DataImmediate target;  // entry, sub and generation at the receiver
  uint32_t cts_sequence = 0;
};

}  // namespace slime
