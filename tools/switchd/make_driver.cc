#include "tools/switchd/make_driver.h"

#include "switch/softswitch/softswitch.h"
#ifdef SLIME_BMV2
#include "switch/bmv2/program.h"
#endif

namespace slime::switchd {
namespace {

template <typename Opened>
Result<std::unique_ptr<net::SwitchDriver>> as_driver(Opened opened) {
  if (!opened) return fail(std::move(opened.error()));
  return std::unique_ptr<net::SwitchDriver>(std::move(*opened));
}

Result<std::unique_ptr<net::SwitchDriver>> make_software(const Config& config) {
  net::SoftSwitchOptions options;
  options.address = config.data_listen;
  options.shards = config.shards;
  options.max_lanes = config.max_lanes;
  options.formats = config.formats;
  options.slot_bytes = config.slot_bytes;
  options.socket_buffer_bytes = config.socket_buffer_bytes;
  options.busy_poll_us = config.busy_poll_us;
  return as_driver(net::SoftSwitch::open(options));
}

#ifdef SLIME_BMV2
Result<std::unique_ptr<net::SwitchDriver>> make_bmv2(const Config& config) {
  net::Bmv2Options options;
  auto runtime = SocketAddress::parse(config.runtime);
  if (!runtime) return fail(std::move(runtime.error()));
  options.runtime = *runtime;
  options.address = config.data_listen;
  options.mac = config.mac;
  options.shards = config.shards;
  options.max_lanes = config.max_lanes;
  options.formats = config.formats;
  for (const auto& [address, host] : config.hosts) {
    auto parsed = SocketAddress::parse(address);
    if (!parsed) return fail(std::move(parsed.error()));
    options.hosts[net::ipv4_of(*parsed)] = {*host.mac, *host.port};
  }
  return as_driver(net::open_bmv2(std::move(options)));
}
#else
Result<std::unique_ptr<net::SwitchDriver>> make_bmv2(const Config&) {
  return fail(make_error(Status::kUnsupported, 0,
                         "device.driver: this slime-switchd was built without Thrift and cannot "
                         "drive bmv2; install libthrift-dev, thrift-compiler and libboost-dev, "
                         "and build it again"));
}
#endif

}  // namespace

Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config) {
  return config.driver == Driver::kBmv2 ? make_bmv2(config) : make_software(config);
}

}  // namespace slime::switchd
