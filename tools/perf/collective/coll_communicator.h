// Runs allreduces over a collComm on the progress thread: NCCL's proxy (src/transport/coll_net.cc)
// and, in its pauses, what the GPU kernels would do.
//
// An operation is cut into calls (coll_plan.h). Through FIFOs, call c uses slot c mod depth, and
// its way is: copied in, issued, done, copied out. Direct ones need no copies. One operation ends
// before the next begins, and all ranks issue the same calls in the same order.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tools/perf/collective/communicator.h"
#include "tools/perf/collective/pattern.h"
#include "tools/perf/plugin/plugin.h"

namespace slime::perf {

struct CollPath {
  const CollTable* api = nullptr;
  void* comm = nullptr;
  CollPlan plan;
  bool direct = false;
  // Where calls read and write: the FIFOs, or the user's buffers.
  void* send_handle = nullptr;
  void* receive_handle = nullptr;
  char* send_fifo = nullptr;
  char* receive_fifo = nullptr;
};

// States of a call: copied in, issued, done, copied out; each count is at most the one before it.
// Thread rules: one run, one thread.
class CollRunner {
 public:
  CollRunner(Job* job, const CollPath& path, const std::atomic<bool>* stop, Pulse* pulse);
  Result<void> run();

 private:
  Result<bool> visit();
  bool copy_in();
  Result<bool> issue();
  Result<bool> test();
  bool copy_out();
  void end_operations();
  void store(char* to, const char* from, size_t bytes) const;
  CollCall call(uint64_t index) const;
  size_t slot(uint64_t index) const { return (first_call_ + index) % path_.plan.depth; }
  size_t bytes_of(uint64_t index) const;

  Job* const job_;
  const CollPath path_;
  const std::atomic<bool>* const stop_;
  Pulse* const pulse_;
  const size_t element_bytes_, bytes_;  // of an operation
  uint32_t operation_ = 0;
  // Calls of this operation, each count at most the one before it.
  uint64_t copied_in_ = 0, issued_ = 0, done_ = 0, copied_out_ = 0;
  size_t in_bytes_ = 0, out_bytes_ = 0;  // of the call that is being copied
  uint64_t first_call_ = 0;              // of this operation, in all
  std::vector<void*> requests_;          // by slot
};

struct CollSetup {
  const CollTable* api = nullptr;
  size_t max_call_bytes = kMaxCollBytes;
  std::vector<DataType> types;  // what is to be reduced
  std::vector<RedOp> ops;
};

// One rank's collComm and its FIFOs: set up and closed on the service thread, used on the progress
// thread, as NCCL does (src/transport/coll_net.cc). States: listening ->
// connected, registered -> closed.
class CollCommunicator final : public Communicator {
 public:
  // Collective over all ranks.
  static Result<std::unique_ptr<Communicator>> create(const CollSetup& coll,
                                                      const CommunicatorSetup& setup);
  ~CollCommunicator() override;  // closes whatever is still open, without waiting for peers

  Result<void> run(Job* job) override;
  Result<void> close() override;

 private:
  CollCommunicator(const CollSetup& coll, const CommunicatorSetup& setup)
      : coll_(coll), setup_(setup) {}
  Result<void> listen();
  Result<void> exchange_handles();
  Result<void> connect();
  Result<void> check_support() const;
  bool supports(DataType type, RedOp op) const;
  std::string supported() const;
  Result<void> register_memory();
  Result<void> add_region(const Buffer& buffer, void** handle);
  CollPath path_of(const Job& job) const;
  void fill_fifos(const Job& job, const CollPath& path) const;

  const CollSetup coll_;
  const CommunicatorSetup setup_;
  HandleBytes handle_{};
  std::vector<HandleBytes> handles_;
  void* listen_comm_ = nullptr;
  void* comm_ = nullptr;
  // The send FIFOs of all channels, then the receive FIFOs: one region, registered for each.
  Buffer fifos_;
  void *send_fifo_handle_ = nullptr, *receive_fifo_handle_ = nullptr;
  void *send_buffer_handle_ = nullptr, *receive_buffer_handle_ = nullptr;
  Workers workers_;
};

}  // namespace slime::perf
