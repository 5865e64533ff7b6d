// A thread that runs one task at a time for its owner: NCCL's service thread and progress thread.
#pragma once

#include <pthread.h>

#include <functional>
#include <semaphore>
#include <thread>

#include "base/process.h"

namespace slime::perf {

// States: not started -> idle <-> running a task -> ended by the destructor. Threads: one thread
// owns it and calls; the worker's own runs the tasks. The semaphores hand `task_` and `result_`
// over.
class Worker {
 public:
  Worker() = default;
  ~Worker() {
    if (!thread_.joinable()) return;
    task_ = nullptr;
    begin_.release();
    thread_.join();
  }

  Result<void> start(const char* name) {  // once, before the first call
    auto thread = start_thread(name, [this] {
      for (begin_.acquire(); task_ != nullptr; begin_.acquire()) {
        result_ = (*task_)();
        end_.release();
      }
    });
    if (!thread) return fail(thread.error());
    thread_ = std::move(*thread);
    pthread_setname_np(thread_.native_handle(), name);
    return {};
  }

  // Runs `task` on the thread and returns what it returns; an error where none was started.
  Result<void> call(const std::function<Result<void>()>& task) {
    if (!thread_.joinable()) {
      return fail(make_error(Status::kNoMemory, 0, "no thread to run this"));
    }
    task_ = &task;
    begin_.release();
    end_.acquire();
    return result_;
  }

 private:
  std::binary_semaphore begin_{0}, end_{0};
  const std::function<Result<void>()>* task_ = nullptr;
  Result<void> result_;
  std::thread thread_;
};

}  // namespace slime::perf
