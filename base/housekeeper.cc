#include "base/housekeeper.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/process.h"

namespace slime {

Result<std::shared_ptr<Housekeeper>> Housekeeper::get(const char* does, const CpuSet& near) {
  static std::mutex mutex;
  static std::weak_ptr<Housekeeper> current;
  static pid_t owner = 0;  // a forked child has the object of its parent, but not the thread
  const std::lock_guard lock(mutex);
  std::shared_ptr<Housekeeper> keeper = owner == ::getpid() ? current.lock() : nullptr;
  if (!keeper) {
    keeper.reset(new Housekeeper);
    if (auto launched = keeper->launch(does); !launched) return fail(std::move(launched.error()));
    current = keeper;
    owner = ::getpid();
  }
  keeper->stay_near(near);
  return keeper;
}

Result<void> Housekeeper::launch(const char* does) {
  const auto body = [](void* self) -> void* {
    static_cast<Housekeeper*>(self)->run();
    return nullptr;
  };
  allowed_ = CpuSet::of_this_thread();
  const int code = start_thread_without_signals(&thread_, body, this);
  launched_ = code == 0;
  if (launched_) return {};
  return fail(system_error(code,
                           "start the housekeeping thread, which %s; raise the limit of processes "
                           "(ulimit -u, or the container's pids.max)",
                           does));
}

// If none of these CPUs is allowed, or the kernel refuses, the thread runs on the CPUs of the
// thread that started it.
void Housekeeper::stay_near(const CpuSet& near) {
  near_ = near_ | near;
  (void)(near_ & allowed_).apply_to(thread_);
}

Housekeeper::~Housekeeper() {
  if (!launched_) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  pthread_join(thread_, nullptr);
}

void Housekeeper::schedule(BackgroundTask* task, uint64_t due_ns) {
  const std::lock_guard lock(mutex_);
  due_.emplace(due_ns, task);
  changed_.notify_all();
}

// After the wait the task is in due_ again, if it was scheduled, and cannot start, because the
// mutex is held.
void Housekeeper::cancel(BackgroundTask* task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, task] { return running_ != task; });
  std::erase_if(due_, [task](const auto& entry) { return entry.second == task; });
}

// Runs the task that is due first, without the mutex, and puts it back with its next time. The
// entry is extracted and inserted again, so this allocates nothing. A time of UINT64_MAX is never
// due.
void Housekeeper::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const auto next = due_.begin();
    if (next == due_.end() || next->first == UINT64_MAX) {
      changed_.wait(lock);
      continue;
    }
    const uint64_t now_ns = steady_now_ns();
    if (next->first > now_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(next->first - now_ns));
      continue;
    }
    running_ = next->second;
    auto entry = due_.extract(next);
    lock.unlock();
    entry.key() = running_->run_due(now_ns);
    lock.lock();
    // A cancel() that waits for this task erases it from due_ after this.
    due_.insert(std::move(entry));
    running_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace slime
