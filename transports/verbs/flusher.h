// Reads behind what a verbs rail has written into device memory: RDMA reads over a queue pair that
// is connected to itself, so they travel the way of the rail's writes and need no peer.
//
// States
//   kReady    reads are posted as they begin
//   kBroken   a read has failed, or the port has lost the address that the queue pair uses: reads
//             wait until poll() has connected another queue pair, and posted them again on it
// It fails for good (ReadFlusher) when the device has failed, another queue pair has not helped, or
// host memory cannot be registered for it.
//
// Each flusher has a queue pair, a completion queue, and eight bytes that its reads write to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "transports/flush_reads.h"
#include "transports/rail.h"
#include "transports/verbs/queue_pair.h"

namespace slime::verbs {

class VerbsRail;

class VerbsFlusher final : public ReadFlusher {
 public:
  static Result<std::unique_ptr<Flusher>> open(VerbsRail& rail);

 private:
  enum class State : uint8_t { kReady, kBroken };

  explicit VerbsFlusher(VerbsRail& rail);
  void begun(bool first) override;
  void progress() override;
  bool post(uint64_t number, const FlushReads::Read& read) override;
  Result<void> create_queue();
  Result<void> connect(std::shared_ptr<const Port> port);

  void take_completions();
  void take_failure(const ibv_wc& completion);
  void watch();
  void repair();

  VerbsRail& rail_;
  CompletionQueue completions_;                   // outlives pair_
  std::unique_ptr<Registered<uint64_t>> target_;  // of the reads

  State state_ = State::kReady;
  QueuePair pair_;
  std::shared_ptr<const Port> port_;  // as it was when pair_ was connected
  uint32_t changes_ = 0;              // of it that watch() has looked at
  uint64_t watch_due_ns_ = 0;

  // Since a read has completed last:
  std::optional<Error> trouble_;           // why reads do not
  std::optional<uint32_t> tried_changes_;  // Port::changes of a port that is up, and did not help
  bool warned_ = false;                    // that a port is waited for
};

}  // namespace slime::verbs
