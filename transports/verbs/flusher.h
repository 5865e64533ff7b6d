// Reads behind what a verbs rail has written into device memory: RDMA reads over a queue pair that
// is connected to itself, so they travel the way of the rail's writes and need no peer.
//
// Each flusher has a queue pair, a completion queue, and eight bytes that its reads land in.
#pragma once

#include <cstdint>
#include <memory>

#include "transports/rail.h"
#include "transports/verbs/queue_pair.h"

namespace slime::verbs {

class VerbsRail;

class VerbsFlusher final : public Flusher {
 public:
  static Result<std::unique_ptr<Flusher>> open(VerbsRail& rail);
  ~VerbsFlusher() override;

  Status begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) override;
  Status poll(uint64_t* completed) override;
  const Error& failure() const override { return failure_; }

 private:
  explicit VerbsFlusher(VerbsRail& rail) : rail_(rail) {}
  Result<void> create_queues(const std::shared_ptr<const Port>& port);
  Result<void> connect_to_itself(const Port& port);
  Status fail_with(Error error);

  VerbsRail& rail_;
  uint32_t room_ = 0;  // reads that may be under way
  ibv_cq* completions_ = nullptr;
  struct alignas(kPage) Landing {
    uint64_t bytes = 0;
  };
  std::unique_ptr<Landing> landing_;
  ibv_mr* landing_memory_ = nullptr;
  QueuePair pair_;
  uint64_t begun_ = 0, completed_ = 0;
  bool failed_ = false;
  Error failure_;
};

}  // namespace slime::verbs
