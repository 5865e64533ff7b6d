#include "base/housekeeper.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace slime {
namespace {

uint64_t now() { return SteadyClock::instance().now_ns(); }

}  // namespace

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

// The host application's signals are not this thread's: it inherits the mask of its maker
// (pthread_sigmask(3)).
Result<void> Housekeeper::launch(const char* does) {
  const auto body = [](void* self) -> void* {
    static_cast<Housekeeper*>(self)->run();
    return nullptr;
  };
  allowed_ = CpuSet::of_this_thread();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = pthread_create(&thread_, nullptr, body, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  launched_ = code == 0;
  if (launched_) return {};
  return fail(system_error(code,
                           "start the housekeeping thread, which %s; raise the limit of processes "
                           "(ulimit -u, or the container's pids.max)",
                           does));
}

// Where none of them is allowed, and where the kernel refuses, it runs where its maker does.
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

void Housekeeper::take(Chore* chore, uint64_t due_ns) {
  const std::lock_guard lock(mutex_);
  due_.emplace(due_ns, chore);
  changed_.notify_all();
}

void Housekeeper::release(Chore* chore) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, chore] { return attended_ != chore; });
  std::erase_if(due_, [chore](const auto& entry) { return entry.second == chore; });
}

void Housekeeper::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const auto next = due_.begin();
    if (next == due_.end() || next->first == UINT64_MAX) {
      changed_.wait(lock);
      continue;
    }
    const uint64_t now_ns = now();
    if (next->first > now_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(next->first - now_ns));
      continue;
    }
    attended_ = next->second;
    auto entry = due_.extract(next);
    lock.unlock();
    entry.key() = attended_->attend(now_ns);
    lock.lock();
    due_.insert(std::move(entry));  // release() has waited for us
    attended_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace slime
