// A mutex for SLIME_CHECK(mutex_.held()) in functions that need it locked. It is a std::mutex and
// nothing more in builds without checks (base/check.h).
#pragma once

#include <mutex>
#ifdef SLIME_CHECKS
#include <atomic>
#include <thread>
#endif

namespace slime {

#ifdef SLIME_CHECKS
// Threads: any.
class Mutex {
 public:
  void lock() {
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }
  bool held() const {  // by the calling thread
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_ = {};
};
#else
class Mutex : public std::mutex {
 public:
  bool held() const;  // only for SLIME_CHECK, which does not call it
};
#endif

}  // namespace slime
