// A tcp rail: one address of one network interface. Needs nothing but the kernel.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interfaces/carrier.h"
#include "base/interfaces/interfaces.h"
#include "base/interfaces/route.h"
#include "settings/settings.h"
#include "transports/closing_queue.h"
#include "transports/rail.h"
#include "transports/region_table.h"
#include "transports/tcp/acceptor.h"
#include "transports/tcp/poller.h"

namespace slime::tcp {

// The socket of a closed channel. close(2) with unread input makes the kernel reset the connection
// and throw away output that the peer has not got yet (RFC 9293, 3.10.4; tcp(7)), although it was
// reported as sent. So input is thrown away until the peer's kernel has everything.
class ClosingSocket {
 public:
  explicit ClosingSocket(Fd fd);  // connected; ends its output
  bool is_done();

 private:
  Fd fd_;
};
using ClosingSockets = ClosingQueue<ClosingSocket>;

class TcpRail final : public Rail {
 public:
  // `index` counts the rails of one interface: socket_count.h says how many there are.
  static std::unique_ptr<TcpRail> open(const Interface& interface, const Settings& settings,
                                       int index = 0);

  const RailCaps& caps() const override { return caps_; }
  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(const MemoryKeys& keys) override;
  Carrier carrier() override { return carrier_.look(steady_now_ns()); }
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override;
  Result<std::unique_ptr<Poller>> open_poller() override { return TcpPoller::open(*this); }

  // For the channels of this rail, which it must outlive.
  const Settings& settings() const { return settings_; }
  const SocketAddress& local() const { return local_; }
  const RegionTable& regions() const { return regions_; }
  Acceptor& acceptor() { return acceptor_; }
  ClosingSockets& closing() { return closing_; }
  const Outlet& outlet() const { return outlet_; }
  // For Dialer::Options; empty also where a bound socket was not answered lately.
  std::string interface_to_bind(const SocketAddress& peer);
  void go_unbound(const SocketAddress& peer);  // it was not answered
  void warn_unmarked(const Error& why);        // once

 private:
  void warn_unbound(const SocketAddress& peer, const char* why);  // once
  TcpRail(RailCaps caps, const Interface& interface, const SocketAddress& local,
          const Settings& settings)
      : caps_(std::move(caps)),
        settings_(settings),
        local_(local),
        outlet_(interface),
        carrier_(interface.name),
        acceptor_(caps_.name, local, settings) {}

  const RailCaps caps_;
  const Settings settings_;
  const SocketAddress local_;
  const Outlet outlet_;
  CarrierSense carrier_;
  RegionTable regions_;
  Acceptor acceptor_;
  ClosingSockets closing_;
  std::atomic<bool> warned_unmarked_{false}, warned_unbound_{false};
  std::atomic<uint64_t> unbound_until_ns_{0};
};

// All tcp rails of this host, in the order of the interfaces. What was skipped goes to `notes`.
Result<std::vector<std::unique_ptr<Rail>>> open_tcp_rails(const Settings& settings,
                                                          std::vector<std::string>* notes);

}  // namespace slime::tcp
