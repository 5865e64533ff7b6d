// A descriptor that is readable while the engine has something for its program to fetch.
//
// States: not made, until a program asks for it; then it is readable exactly while some kind of
// thing is there. Threads: any; a mutex guards all, and callers may hold their own.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>

#include "base/error.h"
#include "base/fd.h"

namespace slime {

class ReadyFd {
 public:
  enum Kind : uint32_t { kCompletions = 1, kNotices = 2 };

  // It stays the same until the engine is closed, which closes it.
  Result<int> descriptor() {
    const std::lock_guard lock(mutex_);
    if (!event_) {
      event_ = Fd(::eventfd(here_ != 0 ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!event_) return fail(descriptor_error(errno, "eventfd"));
    }
    return event_.get();
  }
  void set(Kind kind) {
    const std::lock_guard lock(mutex_);
    if (here_ == 0 && event_) ::eventfd_write(event_.get(), 1);
    here_ |= kind;
  }
  void clear(Kind kind) {
    const std::lock_guard lock(mutex_);
    const bool last = here_ == kind;
    here_ &= ~static_cast<uint32_t>(kind);
    eventfd_t count;
    if (last && event_) ::eventfd_read(event_.get(), &count);
  }

 private:
  std::mutex mutex_;
  uint32_t here_ = 0;  // kinds
  Fd event_;
};

}  // namespace slime
