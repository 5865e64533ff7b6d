// Runs operations on the progress thread: NCCL's proxy (link.h) and, in its pauses, what the GPU
// kernels would do. One thread does both, so that a rank needs one core.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "tools/perf/collective/communicator.h"
#include "tools/perf/collective/kernels.h"
#include "tools/perf/collective/link.h"
#include "tools/perf/collective/plan.h"
#include "tools/perf/words.h"

namespace slime::perf {

// A flow with the connections that it uses.
struct Lane {
  const Flow* flow = nullptr;
  SendLink* send = nullptr;  // null: sends nothing
  RecvLink* recv = nullptr;
};

// States of an operation: its kernels run, batch after batch; it ends when all have handed on their
// last message, and the next begins at once. The run ends when the messages of all are done too.
// A kernel reads a FIFO slot after it was received and before it is retired, and writes one after
// its last message is done: counters in link.h see to that. Thread rules: one run, one thread.
class Runner {
 public:
  Runner(Job* job, std::span<const Lane> lanes, const std::atomic<bool>* stop, Pulse* pulse);
  Result<void> run();

 private:
  struct Kernel : Lane {
    bool sends_user_memory = false;
    size_t step = 0;
    size_t done_bytes = 0;  // of the step
    bool leaving = false;   // all steps done, and messages still leave the user's memory
  };

  void prepare(const Lane& lane);
  Activity advance(Kernel* kernel);
  bool drained() const;
  void hand_on(Kernel* kernel, const Step& step);
  void finish_step(Kernel* kernel, const Step& step);
  void end_kernel();
  void end_batch();
  void work_simple(Kernel* kernel, const Step& step);
  void work_lines(Kernel* kernel, const Step& step);
  void combine(const Step& step, void* out, void* out2, const void* received, const void* own,
               size_t bytes) const;
  Error failure_of(const Kernel& kernel) const;

  Job* const job_;
  const std::atomic<bool>* const stop_;
  Pulse* const pulse_;
  const Kernels& functions_;
  const size_t element_bytes_;
  std::vector<Kernel> kernels_;
  uint64_t operation_ = 0;
  int batch_ = 0, last_batch_ = 0;
  size_t unfinished_ = 0;                      // kernels of this batch
  char *input_ = nullptr, *output_ = nullptr;  // of this operation
  alignas(64) char received_[8192], result_[8192];
};

}  // namespace slime::perf
