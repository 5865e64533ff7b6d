// The limit: writes with immediates between two queue pairs of this program and nothing else. No
// stripes, no requests, no memory cache; chains of kChain works with one completion each.
//
// Belongs to one thread, which has both ends.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/perf/p2p/bare_end.h"

namespace slime::bench {

class BareLoop {
 public:
  static constexpr uint32_t kChain = 16;

  // `bytes`: of the largest work.
  BareLoop(verbs::VerbsRail& from, verbs::VerbsRail& to, size_t bytes);

  // Returns when all works have arrived and are completed; `works` is a multiple of kChain.
  void stream(uint32_t bytes, uint64_t works);
  // Each round is a work there and one back.
  void ping_pong(uint32_t bytes, uint64_t rounds);

 private:
  struct End {
    std::vector<std::byte> memory;
    std::unique_ptr<perf::p2p::BareEnd> verbs;
    uint64_t posted = 0, arrived = 0;
  };
  static void post(End& end, uint32_t bytes, uint32_t works);
  static void poll(End& end);

  End from_, to_;
};

}  // namespace slime::bench
