// Where the queue pairs of closed channels end. A queue pair does not tell its peer that it is
// destroyed, so it sends a message without bytes first, and rests here until that has arrived.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "transports/verbs/hello_buffer.h"
#include "transports/verbs/queue_pair.h"

namespace slime::verbs {

// What is left of a channel that was ready.
struct Remains {
  std::vector<QueuePair> pairs;
  ibv_cq* completions = nullptr;
  std::unique_ptr<HelloBuffer> hellos;  // its own may still be on its way
};

class Farewells {
 public:
  static constexpr size_t kCapacity = 256;

  explicit Farewells(const Nic& nic) : nic_(nic) {}
  ~Farewells();
  Farewells(const Farewells&) = delete;
  Farewells& operator=(const Farewells&) = delete;

  void say(Remains remains);  // when full, the oldest has to go without
  void poll();                // never waits
  size_t size() const;

 private:
  struct Resting {
    Remains remains;
    size_t left;  // messages that have not arrived
    uint64_t deadline_ns;
  };
  void poll_locked(uint64_t now_ns);
  void end(Resting& resting);

  const Nic& nic_;
  mutable std::mutex mutex_;
  std::deque<Resting> resting_;  // oldest first
};

}  // namespace slime::verbs
