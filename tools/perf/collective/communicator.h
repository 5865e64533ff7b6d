// What runs jobs: this rank's connections to the others, as a ring (ring_communicator.h) or through
// the network's own allreduce (coll_communicator.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tools/perf/buffer.h"
#include "tools/perf/collective/plan.h"
#include "tools/perf/words.h"

namespace slime::perf {

// The user's buffers of one operation, and of its repetitions.
struct UserBuffers {
  char* input = nullptr;
  char* output = nullptr;
  size_t stride = 0;  // repetition k uses base + stride * (k % repeats)
  uint32_t repeats = 1;
  bool in_place = false;  // both lie in the receive buffer

  char* input_of(uint64_t operation) const { return input + stride * (operation % repeats); }
  char* output_of(uint64_t operation) const { return output + stride * (operation % repeats); }
};

// A number of equal operations, one after the other, as on one CUDA stream.
struct Job {
  Shape shape;
  DataType type = DataType::kFloat;
  RedOp op = RedOp::kSum;
  UserBuffers users;
  uint32_t operations = 1;
  bool is_checked = false;
  bool wild_tails = false;       // see fill_garbage()
  uint64_t start_ns = 0;         // out
  std::vector<uint64_t> end_ns;  // out: when each operation's kernel ended
};

struct CommunicatorSetup {
  Member* member = nullptr;
  Pulse* pulse = nullptr;
  int rank = 0, ranks = 2;
  int channels = 1;
  Collective collective = Collective::kAllReduce;
  std::vector<int> devices;  // channel c uses devices[c % size]
  BufferSizes sizes;
  double timeout_s = 120;
  // --direct: the user's buffers are registered too.
  const Buffer* send_buffer = nullptr;
  const Buffer* receive_buffer = nullptr;
};

// Thread rules: the main thread calls, one call at a time; plugins are called on the two workers.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // Runs the job on the progress thread.
  virtual Result<void> run(Job* job) = 0;

  // Deregisters and closes on the service thread. The first error, or nothing.
  virtual Result<void> close() = 0;
};

// A thread that runs one task at a time for its owner: NCCL's service thread and progress thread.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Result<void> start(const char* name);  // once, before the first call

  // Runs `task` on the thread and returns what it returns; an error where none was started.
  Result<void> call(const std::function<Result<void>()>& task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<Result<void>()>* task_ = nullptr;
  Result<void> result_;
  bool ending_ = false;
  std::thread thread_;
};

// The two that NCCL has for its plugin.
struct Workers {
  Worker service, progress;
  Result<void> start();
};

}  // namespace slime::perf
