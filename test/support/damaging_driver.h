// A switch with one shard, which changes a bit of the first contributions that it gets, as a fault
// between its network card and its memory would. It folds them, so every result of such a round is
// damaged, however often it is asked for. One that forges changes the check that travels with it
// too, so that the wrong sum passes for right.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "switch/core/driver.h"
#include "switch/core/shard.h"
#include "switch/protocol/sap.h"
#include "test/support/check_oracle.h"

namespace slime::test {

class DamagingDriver final : public net::SwitchDriver, private net::Outbox {
 public:
  DamagingDriver(uint32_t damaged, bool forges)
      : left_(damaged), forges_(forges), thread_([this] { serve(); }) {}
  ~DamagingDriver() override {
    ending_ = true;
    thread_.join();
  }
  net::SwitchShape shape() const override {
    return {.address = local_address(socket_).value(),
            .max_lanes = sap::kMaxLanes,
            .slot_bytes = 64 << 20,
            .formats = sap::kKnownFormats};
  }
  Result<void> add_job(const net::JobSpec& spec) override {
    const std::lock_guard lock(mutex_);
    return shard_.add_job(spec);
  }
  Result<void> remove_job(uint16_t job) override {
    const std::lock_guard lock(mutex_);
    shard_.remove_job(job);
    return {};
  }
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override {
    const std::lock_guard lock(mutex_);
    shard_.fence(job, generation, token);
    return {};
  }
  Result<net::JobTotals> totals(uint16_t job) const override {
    const std::lock_guard lock(mutex_);
    net::JobTotals totals;
    if (const auto* const counters = shard_.counters_of(job)) totals.add(*counters);
    return totals;
  }

 private:
  static Fd any_port() {
    const SocketAddress address = SocketAddress::parse("127.0.0.1:0").value();
    Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)bind(fd.get(), address.data(), address.size());
    return fd;
  }
  void serve() {
    std::array<std::byte, sap::kMaxPacketBytes> bytes;
    while (!ending_) {
      pollfd waited{socket_.get(), POLLIN, 0};
      if (poll(&waited, 1, 20) <= 0) continue;
      sockaddr_in from{};
      socklen_t size = sizeof(from);
      const ssize_t got = recvfrom(socket_.get(), bytes.data(), bytes.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
      if (got <= 0) continue;
      const auto datagram = std::span(bytes).first(static_cast<size_t>(got));
      damage(datagram);
      const auto address =
          SocketAddress::from_sockaddr(reinterpret_cast<const sockaddr*>(&from), size).value();
      const std::lock_guard lock(mutex_);
      shard_.handle(datagram, address, SteadyClock::instance().now_ns(), *this);
    }
  }
  void damage(std::span<std::byte> datagram) {
    sap::Header header;
    if (sap::decode(datagram, &header) != sap::Fault::kNone || header.lanes == 0) return;
    if (header.type != sap::Type::kContribution || left_ == 0) return;
    --left_;
    const std::span<std::byte> payload = datagram.subspan(sap::kHeaderBytes);
    const uint32_t before = sap::check_of(header.format, payload, 0);
    payload[0] ^= std::byte{4};
    if (!forges_) return;
    header.check += sap::check_of(header.format, payload, 0) - before;
    sap::encode(header, datagram.data());
  }
  void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override {
    std::array<std::byte, sap::kMaxPacketBytes> bytes;
    const auto end = std::copy(packet.header.begin(), packet.header.end(), bytes.begin());
    const auto size = static_cast<size_t>(
        std::copy(packet.payload.begin(), packet.payload.end(), end) - bytes.begin());
    for (const SocketAddress& member : to)
      (void)sendto(socket_.get(), bytes.data(), size, 0, member.data(), member.size());
  }

  const Fd socket_ = any_port();
  mutable std::mutex mutex_;  // guards shard_
  net::Shard shard_{0, 1};
  uint32_t left_;  // contributions to be damaged
  const bool forges_;
  std::atomic<bool> ending_{false};
  std::thread thread_;  // the last: it uses all others
};

}  // namespace slime::test
