// A program that listens at the port of an agent and speaks no protocol: to each connection it
// sends the same bytes at once, then a byte every now and then, or nothing more. It reads nothing.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/net/socket.h"

namespace slime::test {

class RawAgent {
 public:
  // drip_ms 0: nothing comes after `first`.
  RawAgent(std::string first, int drip_ms, const std::string& listen = "127.0.0.1:0")
      : first_(std::move(first)),
        drip_ms_(drip_ms),
        listener_(listen_on(*SocketAddress::parse(listen)).value()),
        address_(local_address(listener_).value()),
        thread_([this] { serve(); }) {}
  ~RawAgent() {
    ends_ = true;
    thread_.join();
  }
  RawAgent(const RawAgent&) = delete;
  RawAgent& operator=(const RawAgent&) = delete;
  const SocketAddress& address() const { return address_; }

 private:
  void serve() {
    std::vector<Fd> peers;
    while (!ends_) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (poll(&ready, 1, drip_ms_ > 0 ? drip_ms_ : 20) > 0) {
        peers.emplace_back(accept(listener_.get(), nullptr, nullptr));
        (void)!send(peers.back().get(), first_.data(), first_.size(), MSG_NOSIGNAL);
      }
      if (drip_ms_ == 0) continue;
      for (const Fd& peer : peers) {
        (void)!send(peer.get(), "\0", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  }

  const std::string first_;
  const int drip_ms_;
  const Fd listener_;
  const SocketAddress address_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace slime::test
