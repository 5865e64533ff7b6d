// A thread that runs one task at a time for its owner: NCCL's service thread and progress thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace slime::perf {

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
