// Finds out whether the NIC, the port and the peer of a channel are still there while no work
// completes.
//
// The NIC does not report the peer's end to a queue pair that has nothing to send. So the channel
// posts a write of no bytes from time to time, a keep-alive, which fails when the peer has ended.
// At most one is under way.
//
// Thread: that of the channel.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "transports/verbs/device/port.h"
#include "transports/verbs/lanes.h"

namespace slime::verbs {

class ChannelWatch {
 public:
  ChannelWatch(VerbsRail& rail, std::shared_ptr<const Port> port);

  // An error: the NIC has failed, or the port has lost what the queue pairs were given.
  Result<void> check_port();
  // The same, and keep-alives: once in a while, when a poll() has found nothing.
  bool is_due(uint64_t now_ns) const { return now_ns >= due_ns_; }
  Result<void> look(Lanes& lanes, uint64_t now_ns);

  void completed() { completed_ = true; }  // something has
  void keep_alive_completed() { keeping_alive_ = false; }

 private:
  VerbsRail& rail_;
  const std::shared_ptr<const Port> port_;  // as it was when the channel was opened
  uint32_t changes_;                        // of it that were looked at
  uint64_t due_ns_ = 0;
  bool completed_ = false;          // something has, since the last look
  uint64_t last_completed_ns_ = 0;  // when a look saw that
  bool keeping_alive_ = false;      // a keep-alive is under way
  uint32_t kept_alive_ = 0;         // keep-alives so far
};

}  // namespace slime::verbs
