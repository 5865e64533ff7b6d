// A thread that runs one task at a time for its owner: NCCL's service thread and progress thread.
#pragma once

#include <slime/result.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace slime::perf {

class Worker {
 public:
  explicit Worker(const char* name);
  ~Worker();

  // Runs `task` on the thread and returns what it returns.
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

}  // namespace slime::perf
