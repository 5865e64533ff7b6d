// Runs operations on the progress thread: NCCL's proxy (link.h) and, in its pauses, what the GPU
// kernels would do. One thread does both, so that a rank needs one core.
#pragma once

#include <slime/result.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tools/perf/kernels.h"
#include "tools/perf/link.h"
#include "tools/perf/plan.h"
#include "tools/perf/pulse.h"

namespace slime::perf {

// A number of equal operations, one after the other, as on one CUDA stream.
struct Job {
  const std::vector<Flow>* flows = nullptr;
  std::vector<SendLink*> send_links;  // by flow; null: sends nothing
  std::vector<RecvLink*> recv_links;
  DataType type = DataType::kFloat;
  RedOp op = RedOp::kSum;
  int ranks = 2;
  UserBuffers users;
  uint32_t operations = 1;
  uint64_t start_ns = 0;         // out
  std::vector<uint64_t> end_ns;  // out: when each operation's kernel ended
};

class Runner {
 public:
  Runner(Job* job, const std::atomic<bool>* stop, Pulse* pulse);
  Result<void> run();

 private:
  struct Kernel {
    const Flow* flow = nullptr;
    SendLink* send = nullptr;
    RecvLink* recv = nullptr;
    bool sends_user_memory = false;
    size_t step = 0;
    size_t done_bytes = 0;  // of the step
    bool leaving = false;   // all steps done, and messages still leave the user's memory
  };

  void prepare();
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
