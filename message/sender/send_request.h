// A send, from isend until test reports it done.
#pragma once

#include <array>
#include <cstdint>

#include "link/stripes.h"
#include "message/comm.h"
#include "message/immediate.h"

namespace slime {

// States: free (active is false), open while a bit of `open` is set, done when none is. Each bit is
// a stripe whose completion is missing; bit 0 of an eager message means that its rail has not taken
// it. A stripe that is open is unsent (on no rail) or on the rail `rail[stripe]`. The generation
// counts the uses of the request, so that a late completion of an earlier use is ignored.
// Thread: that of the comm.
struct SendRequest final : Request {
  SendRequest(Comm* comm, uint16_t index_in) : Request(comm), index(index_in) {}

  const uint16_t index;
  bool active = false;
  bool eager = false;  // waits for its eager buffer instead of stripes
  uint32_t generation = 0;
  const std::byte* data = nullptr;
  const MemoryRegion* region = nullptr;
  uint64_t bytes = 0;
  uint64_t started_ns = 0;
  StripePlan plan;
  DataImmediate target;  // entry, sub and generation at the receiver
  uint32_t cts_sequence = 0;
  uint64_t remote_address = 0, remote_offset = 0;  // see Work
  uint64_t open = 0;                               // stripes not known to be done, a bit each
  uint64_t unsent = 0;                             // of the open ones: on no rail yet
  uint64_t lost = 0;                               // of the unsent ones: were on a rail that died
  std::array<uint8_t, kMaxStripes> rail = {};      // where each stripe went
};

}  // namespace slime
