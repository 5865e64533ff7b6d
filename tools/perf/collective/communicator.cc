#include "tools/perf/collective/communicator.h"

#include <pthread.h>

#include "base/process.h"

namespace slime::perf {

Result<void> Worker::start(const char* name) {
  auto thread = start_thread(name, [this] { run(); });
  if (!thread) return fail(thread.error());
  thread_ = std::move(*thread);
  pthread_setname_np(thread_.native_handle(), name);
  return {};
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> Worker::call(const std::function<Result<void>()>& task) {
  if (!thread_.joinable()) return fail(make_error(Status::kNoMemory, 0, "no thread to run this"));
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

Result<void> Workers::start() {
  if (auto started = service.start("slime-service"); !started) return started;
  return progress.start("slime-progress");
}

}  // namespace slime::perf
