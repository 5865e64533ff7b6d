// A tcp rail: one address of one network interface. Needs nothing but the kernel.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/carrier.h"
#include "base/net/interfaces.h"
#include "settings/settings.h"
#include "transports/rail.h"
#include "transports/region_table.h"
#include "transports/tcp/acceptor.h"
#include "transports/tcp/reaper.h"

namespace slime::tcp {

class TcpRail final : public Rail {
 public:
  // `index` counts the rails of one interface: socket_count.h says how many there are.
  static Result<std::unique_ptr<TcpRail>> open(const Interface& interface, const Settings& settings,
                                               int index = 0);

  const RailCaps& caps() const override { return caps_; }
  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(const MemoryKeys& keys) override;
  Carrier carrier() override { return carrier_.look(steady_now_ns()); }
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override;

  // For the channels of this rail, which it must outlive.
  const Settings& settings() const { return settings_; }
  const SocketAddress& local() const { return local_; }
  const RegionTable& regions() const { return regions_; }
  Acceptor& acceptor() { return acceptor_; }
  Reaper& reaper() { return reaper_; }
  void warn_unmarked(const Error& why);  // once

 private:
  TcpRail(RailCaps caps, const Interface& interface, const SocketAddress& local,
          const Settings& settings)
      : caps_(std::move(caps)),
        settings_(settings),
        local_(local),
        carrier_(interface.name),
        acceptor_(caps_.name, local, settings) {}

  const RailCaps caps_;
  const Settings settings_;
  const SocketAddress local_;
  CarrierSense carrier_;
  RegionTable regions_;
  Acceptor acceptor_;
  Reaper reaper_;
  std::atomic<bool> warned_unmarked_{false};
};

// All tcp rails of this host, in the order of the interfaces. What was skipped goes to `notes`.
Result<std::vector<std::unique_ptr<Rail>>> open_tcp_rails(const Settings& settings,
                                                          std::vector<std::string>* notes);

}  // namespace slime::tcp
