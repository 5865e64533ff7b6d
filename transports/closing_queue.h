// The closed channels of one rail that still have something to send: a channel is destroyed at
// once, but what was kSent on it must reach the peer. Entry is what a backend keeps of a channel.
//
// An Entry is movable, closes what it holds in its destructor, and has
//
//   bool is_done();    makes progress, never waits; true: closing it loses nothing
//
// States of an entry
//   open      is_done() has returned false at each poll() so far
//   closed    destroyed: is_done() has returned true, Linger nanoseconds are over, or the queue was
//             full and the entry its oldest
//
// Invariant: at most kCapacity entries, the oldest first.
//
// Threads: any; a mutex guards all. Only the destructor waits, for LastLinger nanoseconds at most.
#pragma once

#include <ctime>
#include <list>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "settings/times.h"

namespace slime {

template <typename Entry, uint64_t Linger = times::kLinger,
          uint64_t LastLinger = times::kLastLinger>
class ClosingQueue {
 public:
  static constexpr size_t kCapacity = 256;

  explicit ClosingQueue(const Clock& clock = SteadyClock::instance()) : clock_(clock) {}
  ClosingQueue(const ClosingQueue&) = delete;
  ClosingQueue& operator=(const ClosingQueue&) = delete;
  ~ClosingQueue() {
    constexpr timespec kPause{0, 100'000};
    const uint64_t begin_ns = clock_.now_ns();
    for (bool late = false; size() > 0 && !late;) {
      late = clock_.now_ns() - begin_ns >= LastLinger;
      poll();
      if (size() > 0 && !late) ::nanosleep(&kPause, nullptr);
    }
  }

  void add(Entry entry) {
    const std::lock_guard lock(mutex_);
    const uint64_t now_ns = clock_.now_ns();
    items_.push_back({std::move(entry), now_ns});
    poll_locked(now_ns);
    if (items_.size() > kCapacity) items_.pop_front();
    SLIME_CHECK(items_.size() <= kCapacity);
  }

  void poll() {
    const std::lock_guard lock(mutex_);
    poll_locked(clock_.now_ns());
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  struct Item {
    Entry entry;
    uint64_t added_ns;
  };
  // is_done() is called for an entry that is late too: that of tcp takes in what the peer has sent.
  void poll_locked(uint64_t now_ns) {
    SLIME_CHECK(mutex_.held());
    items_.remove_if(
        [now_ns](Item& item) { return item.entry.is_done() || now_ns - item.added_ns >= Linger; });
  }

  const Clock& clock_;
  mutable Mutex mutex_;
  std::list<Item> items_;  // a list: entries do not move
};

}  // namespace slime
