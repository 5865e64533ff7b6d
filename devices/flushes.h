// Makes the bytes that the rails of a device wrote into device memory visible to that memory's
// device.
//
// A read on one rail pushes only the writes of that rail. So a flush reads on every rail that has
// delivered since a read last began there, and also waits for the reads of earlier flushes. Reads
// of a rail complete in their order, so a flush holds for each rail the count of reads to wait for.
//
// States of a flush: under way from begin() until test() finds all its reads complete. A read that
// could not begin (to_begin) begins in a later test().
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "devices/device.h"

namespace slime {

struct Flush {
  uint64_t begun_ns = 0;
  uint32_t to_begin = 0;  // rails whose read could not begin yet, a bit each
  const std::byte* address = nullptr;
  const MemoryRegion* region = nullptr;
  std::array<uint64_t, kMaxRails> reads = {};  // for each rail: reads that must be complete
};

class Flushes {
 public:
  // Opens the flushers of the device's rails, if it takes device memory. A flush that takes longer
  // than the limit fails.
  Result<void> open(const Device& device, double limit_seconds);
  bool needed() const { return needed_; }  // some rail needs a flush

  // Bytes have been written into device memory by this rail of the device.
  void delivered(size_t rail) { delivered_ |= uint32_t{1} << rail; }
  // Only where needed(). `region` contains `address`, which is device memory. It must stay
  // registered until the flush is done, because later flushes rely on its reads.
  Status begin(const void* address, const MemoryRegion* region, uint64_t now_ns, Flush* flush);
  // Begins reads that could not begin before, and checks whether all reads are complete.
  Status test(Flush& flush, uint64_t now_ns, bool* done);
  const Error& failure() const { return failure_; }

 private:
  struct Rail {
    std::string name;
    std::unique_ptr<Flusher> flusher;  // nullptr: none is needed
    uint64_t begun = 0, completed = 0;
  };
  Status begin_reads(Flush& flush);
  Status fail(Error error);
  Error overdue(const Flush& flush, uint64_t ns) const;

  std::vector<Rail> rails_;  // of the device
  bool needed_ = false;
  uint64_t limit_ns_ = 0;
  uint32_t delivered_ = 0;  // rails that have delivered since a read last began there, a bit each
  Error failure_;
};

}  // namespace slime
