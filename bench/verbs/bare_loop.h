// The limit: writes with immediates between two queue pairs of this program and nothing else. No
// stripes, no requests, no memory cache; chains of kChain works with one completion each.
//
// Belongs to one thread, which has both ends.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transports/verbs/device/port.h"
#include "transports/verbs/queue_pair.h"

namespace slime::bench {

class BareLoop {
 public:
  static constexpr uint32_t kDepth = 256, kChain = 16, kReceives = 1024;

  // `bytes`: of the largest work.
  BareLoop(std::shared_ptr<const verbs::Port> from, std::shared_ptr<const verbs::Port> to,
           size_t bytes, const Settings& settings);
  ~BareLoop();
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  // Returns when all works have arrived and are completed; `works` is a multiple of kChain.
  void stream(uint32_t bytes, uint64_t works);
  // Each round is a work there and one back.
  void ping_pong(uint32_t bytes, uint64_t rounds);

 private:
  struct End {
    std::shared_ptr<const verbs::Port> port;
    ibv_cq* completions = nullptr;
    verbs::QueuePair pair;
    std::unique_ptr<std::byte[]> memory;
    ibv_mr* region = nullptr;
    uint64_t posted = 0, done = 0, arrived = 0;
    uint32_t receives_owed = 0;
  };
  void prepare(End& end, size_t bytes);
  void connect(End& end, const End& peer, const Settings& settings);
  void post(End& end, const End& peer, uint32_t bytes, uint32_t works);
  static void poll(End& end);
  static void give_receives(End& end, uint32_t count);

  End from_, to_;
};

}  // namespace slime::bench
