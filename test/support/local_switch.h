// A software switch in the process of the test.
#pragma once

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "switch/controller/server.h"
#include "switch/softswitch/softswitch.h"
#include "test/support/damaging_driver.h"

namespace slime {

// Promises slots on a port where nobody listens, as behind a firewall that lets only TCP through.
class DeafDriver final : public net::SwitchDriver {
 public:
  net::SwitchShape shape() const override {
    net::SwitchShape shape;
    shape.address = SocketAddress::parse("127.0.0.1:9").value();
    shape.max_lanes = sap::kMaxLanes;
    shape.slot_bytes = 64 << 20;
    shape.formats = sap::kKnownFormats;
    return shape;
  }
  Result<void> add_job(const net::JobSpec&) override { return {}; }
  Result<void> remove_job(uint16_t) override { return {}; }
  Result<void> fence(uint16_t, uint8_t, uint32_t) override { return {}; }
  Result<net::JobTotals> totals(uint16_t) const override { return net::JobTotals{}; }
};

struct LocalSwitchOptions {
  bool deaf = false;
  uint32_t damaged = 0;                // so many contributions, the first ones
  bool forges = false;                 // their checks too
  std::string listen = "127.0.0.1:0";  // for one that is started again
  uint32_t max_lanes = sap::kMaxLanes;
  uint32_t formats = sap::kKnownFormats;
  uint64_t lease_ns = net::ControllerOptions().lease_ns;
};

// What slime-switchd is made of.
class LocalSwitch {
 public:
  explicit LocalSwitch(const LocalSwitchOptions& options = {}) {
    const SocketAddress any_port = SocketAddress::parse("127.0.0.1:0").value();
    if (options.deaf) {
      driver_ = std::make_unique<DeafDriver>();
    } else if (options.damaged > 0) {
      driver_ = std::make_unique<test::DamagingDriver>(options.damaged, options.forges);
    } else {
      driver_ = net::SoftSwitch::open({.address = any_port,
                                       .shards = 2,
                                       .max_lanes = options.max_lanes,
                                       .formats = options.formats,
                                       .slot_bytes = 64 << 20})
                    .value();
    }
    net::ControllerOptions control;
    control.seed = 1;
    control.lease_ns = options.lease_ns;
    controller_ = std::make_unique<net::Controller>(*driver_, control, SteadyClock::instance());
    net::ServerOptions server;
    server.listen = SocketAddress::parse(options.listen).value();
    server.greeting_ns = server.request_ns = 60'000'000'000;  // no test is about them
    control_ = net::ControlServer::open(*controller_, server).value();
    thread_ = std::thread([this] { serve(); });
  }
  ~LocalSwitch() {
    ending_ = true;
    thread_.join();
  }
  std::string address() const { return control_->address().to_string(); }

 private:
  void serve() {
    while (!ending_) {
      pollfd waited{control_->descriptor(), POLLIN, 0};
      (void)poll(&waited, 1, std::clamp(control_->timeout_ms(), 1, 20));
      control_->run();
    }
  }

  std::unique_ptr<net::SwitchDriver> driver_;
  std::unique_ptr<net::Controller> controller_;
  std::unique_ptr<net::ControlServer> control_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace slime
