#include "tools/perf/worker.h"

#include <pthread.h>

namespace slime::perf {

Worker::Worker(const char* name) : thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> Worker::call(const std::function<Result<void>()>& task) {
  std::unique_lock lock(mutex_);
  task_ = &task;
  changed_.notify_all();
  changed_.wait(lock, [this] { return task_ == nullptr; });
  return std::move(result_);
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return task_ != nullptr || ending_; });
    if (task_ == nullptr) return;
    lock.unlock();
    Result<void> result = (*task_)();
    lock.lock();
    result_ = std::move(result);
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace slime::perf
