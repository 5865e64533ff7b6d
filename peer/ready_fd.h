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
  enum Kind : uint32_t { kCompletions = 1, kNotices = 2, kPeers = 4 };

  // From now on it is readable for these kinds. It stays the same until the engine is closed, which
  // closes it.
  Result<int> descriptor(uint32_t kinds) {
    const std::lock_guard lock(mutex_);
    if (!event_) {
      event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!event_) return fail(descriptor_error(errno, "eventfd"));
    }
    change(kinds, here_);
    return event_.get();
  }
  void set(Kind kind) {
    const std::lock_guard lock(mutex_);
    change(kinds_, here_ | kind);
  }
  void clear(Kind kind) {
    const std::lock_guard lock(mutex_);
    change(kinds_, here_ & ~static_cast<uint32_t>(kind));
  }

 private:
  void change(uint32_t kinds, uint32_t here) {
    const bool before = (kinds_ & here_) != 0, after = (kinds & here) != 0;
    kinds_ = kinds;
    here_ = here;
    if (before == after) return;
    eventfd_t count;
    if (after) {
      ::eventfd_write(event_.get(), 1);
    } else {
      ::eventfd_read(event_.get(), &count);
    }
  }

  std::mutex mutex_;
  uint32_t kinds_ = 0;  // that the program asked for
  uint32_t here_ = 0;   // kinds
  Fd event_;
};

}  // namespace slime
