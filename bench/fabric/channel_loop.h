// The backend by itself: works over one channel between two rails of this program. No clear-to-send
// messages, no requests, no confirmations; as many works under way as the bare loop has writes.
//
// Belongs to one thread, which has both ends.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "bench/fabric/bare_loop.h"
#include "transports/rail.h"

namespace slime::bench {

class ChannelLoop {
 public:
  // `bytes`: of each work.
  ChannelLoop(Rail& from, Rail& to, uint32_t bytes);
  ~ChannelLoop();
  ChannelLoop(const ChannelLoop&) = delete;
  ChannelLoop& operator=(const ChannelLoop&) = delete;

  // Returns when all works have arrived and are sent.
  void stream(uint64_t works);

 private:
  struct End {
    Rail& rail;
    std::unique_ptr<std::byte[]> memory;
    MemoryKeys keys;
    std::unique_ptr<Channel> channel;
  };
  static End make_end(Rail& rail, uint32_t bytes, bool active);
  void connect();
  uint64_t poll(End& end);  // how many completions

  static constexpr uint32_t kBatch = 16;

  End from_, to_;
  std::array<Work, kBatch> works_;
};

}  // namespace slime::bench
