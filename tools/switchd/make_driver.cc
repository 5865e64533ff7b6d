// Makes the switch that the configuration names, of those that this program was built with.
#include "switch/softswitch/softswitch.h"
#ifdef SLIME_BMV2
#include "switch/bmv2/program.h"
#endif
#ifdef SLIME_TOFINO
#include "switch/tofino/runtime.h"
#endif
#include "tools/switchd/daemon.h"

namespace slime::switchd {
namespace {

// A driver of any kind as the one that the controller knows.
template <typename Opened>
Result<std::unique_ptr<net::SwitchDriver>> as_driver(Opened opened) {
  if (!opened) return fail(std::move(opened.error()));
  return std::unique_ptr<net::SwitchDriver>(std::move(*opened));
}

Result<std::unique_ptr<net::SwitchDriver>> make_software(const Config& config) {
  return as_driver(net::SoftSwitch::open({.address = config.data_listen,
                                          .shards = config.shards,
                                          .max_lanes = config.max_lanes,
                                          .formats = config.formats,
                                          .slot_bytes = config.slot_bytes,
                                          .socket_buffer_bytes = config.socket_buffer_bytes,
                                          .busy_poll_us = config.busy_poll_us}));
}

#if defined(SLIME_BMV2) || defined(SLIME_TOFINO)
// What all switches in P4 are told, and where their runtime interface is.
template <typename Options>
Result<Options> p4_options(const Config& config) {
  Options options;
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
  return options;
}
#endif

#ifdef SLIME_BMV2
Result<std::unique_ptr<net::SwitchDriver>> make_bmv2(const Config& config) {
  auto options = p4_options<net::Bmv2Options>(config);
  if (!options) return fail(std::move(options.error()));
  return as_driver(net::open_bmv2(std::move(*options)));
}
#else
Result<std::unique_ptr<net::SwitchDriver>> make_bmv2(const Config&) {
  return fail(make_error(Status::kUnsupported, 0,
                         "device.driver: this slime-switchd was built without Thrift and cannot "
                         "drive bmv2; install libthrift-dev, thrift-compiler and libboost-dev, "
                         "and build it again"));
}
#endif

#ifdef SLIME_TOFINO
Result<std::unique_ptr<net::SwitchDriver>> make_tofino(const Config& config) {
  auto options = p4_options<net::TofinoOptions>(config);
  if (!options) return fail(std::move(options.error()));
  options->program = config.program;
  options->device = config.device;
  return as_driver(net::open_tofino(std::move(*options)));
}
#else
Result<std::unique_ptr<net::SwitchDriver>> make_tofino(const Config&) {
  return fail(make_error(Status::kUnsupported, 0,
                         "device.driver: this slime-switchd was built without gRPC and cannot "
                         "drive Tofino; install libgrpc++-dev, protobuf-compiler-grpc, "
                         "protobuf-compiler and libprotobuf-dev, and build it again"));
}
#endif

}  // namespace

Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config) {
  switch (config.driver) {
    case Driver::kBmv2:
      return make_bmv2(config);
    case Driver::kTofino:
      return make_tofino(config);
    case Driver::kSoftware:
      break;
  }
  return make_software(config);
}

}  // namespace slime::switchd
