// What is left of closed channels: lifelines that have not sent all they were told to, and
// endpoints that the peer may still touch. shm's peer reads and writes the memory of an endpoint
// itself, so it is closed only when the peer has said that it is done, or has ended. Nobody reads
// its completions here, so nothing arrives in our memory.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "transports/fabric/endpoint.h"
#include "transports/fabric/lifeline.h"

namespace slime::fabric {

class Resting {
 public:
  static constexpr size_t kCapacity = 256;

  // An endpoint that is none: only the lifeline is kept. When full, the oldest ends, and a peer in
  // this process that still uses its endpoint may crash.
  void add(Endpoint endpoint, std::unique_ptr<Lifeline> lifeline);
  void poll();  // never waits
  size_t size() const;

 private:
  struct One {
    Endpoint endpoint;
    std::unique_ptr<Lifeline> lifeline;
  };
  mutable std::mutex mutex_;
  std::deque<One> resting_;  // oldest first
};

}  // namespace slime::fabric
