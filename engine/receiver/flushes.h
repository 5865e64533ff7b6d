// Carries out iflush: it makes the bytes that the rails of a receiving comm wrote into device
// memory visible to the device.
//
// A read on one rail pushes only the writes of that rail. So a flush reads on every rail that has
// delivered since a read last began there, and also waits for the reads of earlier flushes. Reads
// of a rail complete in their order, so a request holds for each rail the count of reads to wait
// for.
//
// States of a request: free (active is false), active from begin() until test() finds all its reads
// complete. A read that could not begin (to_begin) begins in a later test().
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
  std::array<uint64_t, kMaxRails> reads = {};  // for each rail: reads that must be complete
};

class Flushes {
 public:
  // Opens the flushers of the device's rails, if it takes device memory. A flush that takes longer
  // than the limit fails. The caller fails the comm with the error.
  Result<void> open(Comm& comm, const Device& device, double limit_seconds);

  // A stripe, or part of one, has been written into device memory by this rail of the device.
  void delivered(size_t rail) { delivered_ |= uint32_t{1} << rail; }
  // `region` contains `address`, which is device memory. It must stay registered until the flush is
  // done, because later flushes rely on its reads. nullptr: no rail needs a flush, or *status is an
  // error.
  FlushRequest* begin(const void* address, const MemoryRegion* region, uint64_t now_ns,
                      Status* status);
  // Returns the request as a flush; nullptr: it is a receive.
  FlushRequest* find(Request* request);
  bool any_open() const { return open_ > 0; }
  // Begins reads that could not begin before, and checks whether all reads are complete.
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
  std::vector<FlushRequest> requests_;  // empty if no rail needs a flush
  uint32_t open_ = 0;                   // number of active requests
  uint64_t limit_ns_ = 0;
  uint32_t delivered_ = 0;  // rails that have delivered since a read last began there, a bit each
  Error failure_;
};

}  // namespace slime
