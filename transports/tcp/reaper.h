// Where the sockets of closed channels end.
//
// close(2) with unread input makes the kernel reset the connection and throw away output that the
// peer has not got yet (RFC 9293, 3.10.4; tcp(7)), although it was reported as sent. So a socket
// rests here, its input thrown away, until the peer's kernel has everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "base/clock.h"
#include "base/net/socket.h"

namespace slime::tcp {

class Reaper {
 public:
  static constexpr size_t kCapacity = 256;

  explicit Reaper(const Clock& clock = SteadyClock::instance()) : clock_(clock) {}
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper();  // waits for output that is still on its way, times::kLastLinger at most

  void add(Fd fd);  // a connected socket; ends its output. When full, the oldest has to go
  void poll();      // never waits
  size_t size() const;

 private:
  struct Resting {
    Fd fd;
    uint64_t deadline_ns;
  };
  void poll_locked(uint64_t now_ns);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::deque<Resting> resting_;  // oldest first
};

}  // namespace slime::tcp
