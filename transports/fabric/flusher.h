// Reads behind what a libfabric rail has written into device memory: RDMA reads of an endpoint
// from itself, so they go through the rail's NIC and need no peer.
//
// States of a read
//   kWaiting   to be posted: the provider has not taken it yet, or it has failed and is repeated,
//              for as long as the caller waits
//   kPosted    the provider has it, and its context
//   kDone      complete, or its memory was deregistered meanwhile: nobody looks there
// The flusher itself fails, for good, only when the provider's calls do.
//
// Invariant: completed_ <= begun_ <= completed_ + kMostReads. Reads complete in any order, and are
// counted in the order of their beginning.
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
  static constexpr EndpointSizes kSizes = {
      .completions = 2 * kMostReads, .sends = 64, .receives = 64};

  struct Read {
    enum class State : uint8_t { kWaiting, kPosted, kDone };
    fi_context2 context = {};
    State state = State::kDone;
    const std::byte* address = nullptr;
    uint64_t offset = 0;
    MemoryKeys keys;
  };

  FabricFlusher(FabricRail& rail, Endpoint endpoint, fi_addr_t self)
      : rail_(rail), self_(self), endpoint_(std::move(endpoint)) {}

  Read& read(uint64_t number) { return reads_[number % kMostReads]; }
  Read* find(const void* context);
  bool is_registered(const Read& read) const;
  void post_waiting();
  long post(Read& read);
  void take_completions();
  void take_failure();
  void repeat(Read& read, const fi_cq_err_entry& error);
  Status fail_with(Error error);

  FabricRail& rail_;
  const fi_addr_t self_;  // endpoint_, as its own peer
  std::array<Read, kMostReads> reads_;
  Endpoint endpoint_;  // ends before its contexts
  uint64_t begun_ = 0, completed_ = 0;
  uint64_t post_due_ns_ = 0;  // after a failed read
  bool warned_ = false;       // of reads that fail, since one has completed
  bool failed_ = false;
  Error failure_;
};

}  // namespace slime::fabric
