// Reads behind what a libfabric rail has written into device memory: RDMA reads of an endpoint
// from itself, so they go through the rail's NIC and need no peer.
//
// States
//   usable     reads begin; one that the provider does not take yet is posted by a later poll()
//   failed     for good: failure_ says why
//
// Invariant: completed_ <= posted_ <= begun_ <= completed_ + kMostReads. Reads complete in any
// order, and are counted in the order of their beginning.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "transports/fabric/endpoint.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

class FabricFlusher final : public Flusher {
 public:
  static Result<std::unique_ptr<Flusher>> open(FabricRail& rail);

  Status begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) override;
  Status poll(uint64_t* completed) override;
  const Error& failure() const override { return failure_; }

 private:
  static constexpr size_t kMostReads = 16;

  struct Read {
    fi_context2 context = {};  // the provider's while the read is under way
    const std::byte* address = nullptr;
    uint64_t offset = 0;
    MemoryKeys keys;
    bool done = false;
  };

  FabricFlusher(FabricRail& rail, Endpoint endpoint, fi_addr_t self)
      : rail_(rail), self_(self), endpoint_(std::move(endpoint)) {}

  Read& read(uint64_t number) { return reads_[number % kMostReads]; }
  bool is_registered(const Read& read) const;
  void post_begun();
  long post(Read& read);
  void take_completions();
  void take_failure();
  Status fail_with(Error error);

  FabricRail& rail_;
  const fi_addr_t self_;  // endpoint_, as its own peer
  std::array<Read, kMostReads> reads_;
  Endpoint endpoint_;  // ends before its contexts
  uint64_t begun_ = 0, posted_ = 0, completed_ = 0;
  bool failed_ = false;
  Error failure_;
};

}  // namespace slime::fabric
