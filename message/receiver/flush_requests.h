// The flushes of a receiving comm, as NCCL asks for them by iflush: a pool of requests over the
// flushes of its device.
//
// States of a request: free (active is false), active from begin() until test() finds it done.
// Threads: as the comm.
#pragma once

#include <vector>

#include "devices/flushes.h"
#include "message/comm.h"

namespace slime {

struct FlushRequest final : Request {
  explicit FlushRequest(Comm* comm) : Request(comm) {}
  bool active = false;
  Flush flush;
};

class FlushRequests {
 public:
  // As Flushes::open. Without rails that need a flush there are no requests.
  Result<void> open(Comm& comm, const Device& device, double limit_seconds);

  void delivered(size_t rail) { flushes_.delivered(rail); }
  // nullptr: no rail needs a flush, or *status is an error. The arguments are those of
  // Flushes::begin.
  FlushRequest* begin(const void* address, const MemoryRegion* region, uint64_t now_ns,
                      Status* status);
  // Returns the request as a flush; nullptr: it is a receive.
  FlushRequest* find(Request* request);
  bool any_open() const { return open_ > 0; }
  Status test(FlushRequest& request, uint64_t now_ns, bool* done);
  const Error& failure() const { return failure_; }

 private:
  Status fail(Error error);

  Flushes flushes_;
  std::vector<FlushRequest> requests_;
  uint32_t open_ = 0;  // number of active requests
  Error failure_;
};

}  // namespace slime
