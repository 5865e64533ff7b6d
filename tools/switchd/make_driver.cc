// Makes the switch that the configuration names, of those that this program was built with.
#ifdef SLIME_BMV2
#include "switch/bmv2/program.h"
#endif
#ifdef SLIME_TOFINO
#include "switch/tofino/runtime.h"
#endif
#include "switch/p4driver/device_thread.h"
#include "tools/switchd/daemon.h"

namespace slime::switchd {
namespace {

// A switch in P4 waits for its device on a thread of its own.
[[maybe_unused]] Result<std::unique_ptr<net::SwitchDriver>> on_thread(
    Result<std::unique_ptr<net::P4Switch>> opened) {
  if (!opened) return fail(std::move(opened.error()));
  return std::make_unique<net::DeviceThread>(std::move(*opened));
}

// The options of a switch in P4, whichever device it is.
[[maybe_unused]] net::P4Options p4_options(const Config& config) {
  net::P4Options options = config.p4;
  options.address = config.data.address;
  options.shards = config.data.shards;
  options.max_lanes = config.data.max_lanes;
  options.formats = config.data.formats;
  for (const auto& [address, host] : config.hosts) {  // make_config() has checked them
    options.hosts[net::ipv4_of(*SocketAddress::parse(address))] = {*host.mac, *host.port};
  }
  return options;
}

[[maybe_unused]] tl::unexpected<Error> not_built(const char* library, const char* device,
                                                 const char* packages) {
  return fail(Status::kUnsupported,
              "device.driver: this slime-switchd was built without %s and cannot drive %s; install "
              "%s, and build it again",
              library, device, packages);
}

}  // namespace

Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config) {
  switch (config.driver) {
    case Driver::kBmv2:
#ifdef SLIME_BMV2
      return on_thread(net::open_bmv2(p4_options(config)));
#else
      return not_built("Thrift", "bmv2", "libthrift-dev, thrift-compiler and libboost-dev");
#endif
    case Driver::kTofino:
#ifdef SLIME_TOFINO
      return on_thread(net::open_tofino(p4_options(config)));
#else
      return not_built("gRPC", "Tofino",
                       "libgrpc++-dev, protobuf-compiler-grpc, protobuf-compiler and "
                       "libprotobuf-dev");
#endif
    case Driver::kSoftware:
      break;
  }
  auto opened = net::SoftSwitch::open(config.data);
  if (!opened) return fail(std::move(opened.error()));
  return std::move(*opened);
}

}  // namespace slime::switchd
