#include "tools/perf/p2p/plain.h"

#include <nlohmann/json.hpp>

#include "devices/devices.h"
#include "tools/perf/p2p/plain_tcp.h"
#include "tools/perf/p2p/plain_verbs.h"

namespace slime::perf::p2p {

Result<std::unique_ptr<PlainLoop>> PlainLoop::open(const Options& options, bool initiator,
                                                   std::span<std::byte> memory) {
  auto settings = parse_settings(process_environment());
  if (!settings) return fail(std::move(settings.error()));
  auto devices = Devices::open(*settings, SteadyClock::instance());
  if (!devices) return fail(std::move(devices.error()));
  if ((*devices)->device_count() == 0) return fail(Status::kConfig, "--raw: there is no NIC");
  const RailCaps& caps = (*devices)->device(0)->rails().front()->caps();
  if (caps.transport == "tcp") return PlainTcp::open(options, initiator, memory, **devices);
  if (caps.transport == "verbs") return PlainVerbs::open(options, memory, std::move(*devices));
  return fail(Status::kUnsupported,
              "--raw: there is no plain loop for rail %s (%s), but for rails of tcp and verbs; "
              "leave --raw out, or choose with NCCL_SLIME_TRANSPORTS",
              caps.name.c_str(), caps.transport.c_str());
}

Result<void> PlainLoop::connect(const nlohmann::json& other) {
  const std::string mine = name().at("transport"), theirs = other.at("transport");
  if (mine == theirs) return connect_to(other);
  return fail(Status::kConfig,
              "--raw: the first rail is one of %s here and one of %s at the other rank; choose one "
              "with NCCL_SLIME_TRANSPORTS",
              mine.c_str(), theirs.c_str());
}

}  // namespace slime::perf::p2p
