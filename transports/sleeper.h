// Lets a thread sleep until a channel on one of several pollers has something, or another thread
// wakes it.
//
// States: nobody sleeps, or one thread is in wait(). A wake() that comes while nobody sleeps is
// kept for the next wait(); any number of them count as one. Threads: wake() from any; the rest
// from one.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "transports/poller.h"

namespace slime {

class Sleeper {
 public:
  static Result<std::unique_ptr<Sleeper>> open();

  // False: it cannot be slept on. It must live as long as this.
  bool add(Poller& poller);
  // Another descriptor to wake up for when it is readable.
  void add(int descriptor);
  // Returns when a poller names a channel, when somebody has called wake(), or after `ns`; perhaps
  // earlier. True: a descriptor of add(int) is readable.
  bool wait(uint64_t ns);
  void wake();

 private:
  explicit Sleeper(Fd event);
  bool take_wake();

  Fd event_;  // eventfd(2): readable from a wake() on until a wait() has seen it
  std::atomic<bool> woken_{false};
  std::vector<Poller*> pollers_;
  std::vector<pollfd> watched_;  // event_ first
  std::vector<size_t> others_;   // of watched_: those of add(int)
};

}  // namespace slime
