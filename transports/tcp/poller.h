// The poller of a tcp rail: one epoll set (epoll(7)) of the channels' sockets. The kernel names a
// socket once and then not until it is armed again (EPOLLONESHOT). Threads: any.
#pragma once

#include <sys/epoll.h>

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "transports/poller.h"

namespace slime::tcp {

class TcpPoller final : public Poller {
 public:
  static Result<std::unique_ptr<Poller>> open(const Rail& rail);

  size_t poll(std::span<uint64_t> tags) override;
  int descriptor() const override { return epoll_.get(); }

  // For the channels, about their connected sockets.
  Result<void> add(const Fd& socket, uint64_t tag) const;
  void arm(const Fd& socket, uint64_t tag, uint32_t events) const;  // 0: disarm
  void remove(const Fd& socket) const;

 private:
  TcpPoller(const Rail& rail, Fd epoll) : Poller(rail), epoll_(std::move(epoll)) {}

  const Fd epoll_;
};

}  // namespace slime::tcp
