// Carries out iflush: makes what the rails of a receiving comm wrote into device memory visible to
// the device.
//
// A read on one rail pushes only that rail's writes. So a flush reads on every rail that has
// delivered since a read last began there, and waits for the reads that earlier flushes began too.
// Reads of a rail complete in their order, so a request is a count to wait for on each rail.
//
// Threads: as the comm.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm.h"
#include "engine/device.h"
#include "engine/link/records.h"

namespace slime {

struct FlushRequest final : Request {
  explicit FlushRequest(Comm* comm) : Request(comm) {}

  bool active = false;
  uint64_t begun_ns = 0;
  uint32_t to_begin = 0;  // rails whose read could not begin yet, a bit each
  const std::byte* address = nullptr;
  const MemoryRegion* region = nullptr;
  std::array<uint64_t, kMaxRails> reads = {};  // of each rail, that must be complete
};

class Flushes {
 public:
  // Opens what the rails of the device need, if any takes device memory. A flush that takes longer
  // than the limit fails. The error is for the comm.
  Result<void> open(Comm& comm, const Device& device, double limit_seconds);

  // A stripe, or part of one, has been written into device memory by this rail of the device.
  void delivered(size_t rail) { delivered_ |= uint32_t{1} << rail; }
  // `region` holds `address`, which is device memory, and stays registered until the flush is done:
  // later flushes count on its reads. nullptr: no rail needs a flush, or it failed, which *status
  // then says.
  FlushRequest* begin(const void* address, const MemoryRegion* region, uint64_t now_ns,
                      Status* status);
  // The flush that this request is; nullptr: it is a receive.
  FlushRequest* find(Request* request);
  bool any_open() const { return open_ > 0; }
  // Begins what could not begin before, and looks whether all reads are complete.
  Status test(FlushRequest& request, uint64_t now_ns, bool* done);
  const Error& failure() const { return failure_; }

 private:
  struct Rail {
    std::string name;
    std::unique_ptr<Flusher> flusher;  // nullptr: none is needed
    uint64_t begun = 0, completed = 0;
  };
  Status begin_reads(FlushRequest& request);
  Status fail(Error error);
  Error overdue(const FlushRequest& request, uint64_t ns) const;

  std::vector<Rail> rails_;             // of the device
  std::vector<FlushRequest> requests_;  // none where no rail needs a flush
  uint32_t open_ = 0;                   // of those
  uint64_t limit_ns_ = 0;
  uint32_t delivered_ = 0;  // since a read last began there, a bit per rail
  Error failure_;
};

}  // namespace slime
