// Reads behind what a libfabric rail has written into device memory: RDMA reads of an endpoint
// from itself, so they go through the rail's NIC and need no peer.
//
// A read that the provider does not take yet, or that has failed, is posted by a later poll(), for
// as long as the caller waits. The flusher fails, for good, only when a call of the provider does.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "transports/fabric/endpoint.h"
#include "transports/flush_reads.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

class FabricFlusher final : public ReadFlusher {
 public:
  static Result<std::unique_ptr<Flusher>> open(FabricRail& rail);

 private:
  static constexpr EndpointSizes kSizes = {
      .completions = 2 * FlushReads::kMost, .sends = 64, .receives = 64};

  FabricFlusher(FabricRail& rail, Endpoint endpoint, fi_addr_t self);

  void begun(bool /*first*/) override { post_if_due(); }
  void progress() override;
  bool post(uint64_t number, const FlushReads::Read& read) override;
  std::optional<uint64_t> number_of(const void* context) const;
  void post_if_due();
  void take_completions();
  void take_failure();
  void warn_of(const FlushReads::Read& read, const fi_cq_err_entry& error);

  FabricRail& rail_;
  const fi_addr_t self_;  // endpoint_, as its own peer
  // A read's belongs to the provider until the read is complete.
  std::array<fi_context2, FlushReads::kMost> contexts_ = {};
  Endpoint endpoint_;         // ends before its contexts
  uint64_t post_due_ns_ = 0;  // after a read has failed
  bool warned_ = false;       // of reads that fail, since one has completed
};

}  // namespace slime::fabric
