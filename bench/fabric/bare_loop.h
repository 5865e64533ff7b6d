// The limit: fi_writemsg with remote data between two endpoints of this program and nothing else.
// No stripes, no requests, no memory cache, no confirmations.
//
// Belongs to one thread, which has both ends.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transports/fabric/discovery.h"
#include "transports/fabric/endpoint.h"

namespace slime::bench {

class BareLoop {
 public:
  static constexpr uint32_t kDepth = 128;  // writes under way

  // `bytes`: of the largest write.
  BareLoop(const fabric::Symbols& symbols, const fabric::Nic& nic, size_t bytes);
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  // Returns when all writes have arrived and are complete.
  void stream(uint32_t bytes, uint64_t writes);
  // Each round is a write there and one back.
  void ping_pong(uint32_t bytes, uint64_t rounds);

 private:
  struct End {
    fabric::Endpoint endpoint;
    std::unique_ptr<std::byte[]> memory;
    fabric::Handle<fid_mr> region;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    std::vector<fi_context2> contexts = std::vector<fi_context2>(kDepth);
    uint64_t posted = 0, done = 0, arrived = 0;
  };
  void prepare(End& end, size_t bytes);
  bool post(End& end, const End& target, uint32_t bytes);  // false: no room
  void poll(End& end);

  const fabric::Symbols& symbols_;
  const std::unique_ptr<fabric::Domain> domain_;
  End from_, to_;
};

}  // namespace slime::bench
