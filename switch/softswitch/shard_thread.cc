// The data path: receive a batch, handle it, send the answers, again.
#include "switch/softswitch/shard_thread.h"

#include <poll.h>

#include <cerrno>

#include "base/clock.h"

namespace slime::net {
namespace {

constexpr uint32_t kFailuresInARow = 64;
constexpr int kPauseMs = 1;

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

}  // namespace

// How to wait for packets, for commands and for the end at the same time: a receive call that
// blocks, and a datagram without bytes that the socket sends to itself as a bell. Measured with
// bench-switch against poll(2) on the socket and an eventfd whenever the socket is empty: latency
// is the same, but the two more system calls of every wait took a tenth of the packet rate where
// batches are small. A lost bell costs kIdleUs; a thread with traffic looks for commands after
// every batch.
void ShardThread::loop() {
  uint32_t failures = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    if (called_.load(std::memory_order_acquire)) run_command();
    const int count = receive();
    if (count > 0) handle_batch(static_cast<uint32_t>(count));
    // EAGAIN: kIdleUs are over. Everything else, ICMP's messages among it, concerns packets that
    // are lost already; but a socket that fails for good must not take the processor.
    const bool failed = count < 0 && errno != EAGAIN && errno != EINTR;
    failures = failed ? failures + 1 : 0;
    if (failures > kFailuresInARow) (void)poll(nullptr, 0, kPauseMs);
  }
}

int ShardThread::receive() {
  if (options_.busy_poll_us > 0) {
    const uint64_t end_ns = now_ns() + uint64_t{options_.busy_poll_us} * 1000;
    do {
      const int count = in_.receive(socket_.get(), MSG_DONTWAIT);
      io_.receive_calls.add();
      if (count > 0) return count;
    } while (now_ns() < end_ns && !called_.load(std::memory_order_relaxed) &&
             !stop_.load(std::memory_order_relaxed));
  }
  io_.receive_calls.add();
  return in_.receive(socket_.get(), MSG_WAITFORONE);
}

void ShardThread::handle_batch(uint32_t count) {
  io_.batches.add();
  const uint64_t now = now_ns();
  for (uint32_t index = 0; index < count; ++index) handle(index, now);
  out_.flush();
}

void ShardThread::handle(uint32_t index, uint64_t now) {
  std::span<const std::byte> datagram = in_.datagram(index);
  const SocketAddress& from = in_.from(index);
  if (datagram.empty() && from == address_) return;  // the bell
  io_.packets_in.add();
  io_.bytes_in.add(datagram.size());
  if (in_.truncated(index)) {
    io_.truncated.add();
    datagram = {};  // what is left could pass for a packet of max_lanes
  }
  if (out_.holds(datagram)) {
    io_.early_sends.add();
    out_.flush();
  }
  shard_.handle(datagram, from, now, out_);
}

void ShardThread::run_command() {
  std::unique_lock lock(mutex_);
  called_.store(false, std::memory_order_relaxed);
  if (command_ == nullptr) return;  // given up
  running_ = true;
  lock.unlock();
  (*command_)(shard_);
  lock.lock();
  running_ = false;
  command_ = nullptr;
  changed_.notify_all();
}

}  // namespace slime::net
