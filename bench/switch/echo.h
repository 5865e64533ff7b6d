// The bare thing to compare with: a thread that receives packets and sends them back as they are,
// with the same batches, buffers and waiting as the switch, and nothing in between.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "base/net/socket.h"

namespace slime::bench {

class Echo {
 public:
  // nullptr, after a message: it failed. `busy_poll_us` as the switch has it.
  static std::unique_ptr<Echo> start(const SocketAddress& address, uint32_t packet_bytes,
                                     uint64_t buffer_bytes, uint32_t busy_poll_us);
  ~Echo();

  const SocketAddress& address() const { return address_; }
  uint64_t cpu_ns();
  uint64_t packets() const { return packets_.load(std::memory_order_relaxed); }
  uint64_t batches() const { return batches_.load(std::memory_order_relaxed); }

 private:
  Echo(Fd socket, const SocketAddress& address) : socket_(std::move(socket)), address_(address) {}
  void loop(uint32_t packet_bytes, uint32_t busy_poll_us);

  Fd socket_;
  SocketAddress address_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> packets_{0}, batches_{0};
  std::thread thread_;
};

}  // namespace slime::bench
