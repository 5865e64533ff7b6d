// The way of the other ranks to rank 0's port.
#pragma once

#include <poll.h>

#include "base/clock.h"
#include "base/net/socket.h"

namespace slime::rendezvous {

inline constexpr int kPollMs = 20;

// Repeats `step` until it answers something but kAgain. kAgain: the deadline is over; after a pause
// of this thread the step is tried once more before that is the answer.
template <typename Step>
Status try_until(const Clock& clock, uint64_t deadline_ns, const Fd& fd, short events, Step step) {
  for (;;) {
    const bool late = clock.now_ns() >= deadline_ns;
    const Status status = step();
    if (status != Status::kAgain || late) return status;
    pollfd waited{fd.get(), events, 0};
    (void)::poll(&waited, 1, kPollMs);
  }
}

// Completes a connection that was started. kAgain: the deadline is over.
inline Status connect_until(const Clock& clock, uint64_t deadline_ns, const Fd& fd,
                            const SocketAddress& address, Error* error) {
  return try_until(clock, deadline_ns, fd, POLLOUT,
                   [&] { return finish_connect(fd, address, error); });
}

}  // namespace slime::rendezvous
