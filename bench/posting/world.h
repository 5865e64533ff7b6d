// The simulated NICs of one thread, each connected to a NIC of another host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/posting/model.h"
#include "test/support/load/engine_pair.h"
#include "test/support/sim/sim_rail.h"

namespace slime::bench {

inline RailCaps sim_caps(const std::string& name) {
  RailCaps caps;
  caps.name = name;
  caps.transport = "sim";
  caps.speed_mbps = kRateMbps;
  caps.send_queue_depth = kQueueDepth;
  caps.max_batch = kMaxBatch;
  caps.max_message_bytes = kWorkBytes;
  caps.arrives_unpolled = true;  // as RDMA does
  return caps;
}

inline sim::RailModel sender_model(const Regime& regime) {
  sim::RailModel model;
  model.rate_mbps = kRateMbps;
  model.costs = {regime.post, regime.doorbell, regime.refused, regime.poll};
  model.window_bytes = uint64_t{1} << 40;
  return model;
}

// The other host's processor is not ours: its calls take no time of ours.
inline sim::RailModel receiver_model() {
  sim::RailModel model;
  model.rate_mbps = kRateMbps;
  return model;
}

// The engine and libslime run over rails that reorder, as EFA does.
inline RailCaps unordered_caps(const std::string& name) {
  RailCaps caps = sim_caps(name);
  caps.ordered = false;
  return caps;
}

inline sim::RailModel unordered_sender_model(const Regime& regime) {
  sim::RailModel model = sender_model(regime);
  model.jitter_ns = 3'000;
  return model;
}

struct Nic {
  std::unique_ptr<Rail> rail, peer_rail;
  std::unique_ptr<Channel> channel, peer;
};

// The works of a World carry no bytes, so that a row takes a second and not a minute: the wire is
// busy for as long as kWorkBytes would take.
class World {
 public:
  World(const Regime& regime, uint32_t nics);

  sim::Network& network() { return network_; }
  Nic& nic(uint32_t index) { return nics_[index]; }
  void drain_peers();  // free of charge
  RailTotals totals() const;

 private:
  void connect(Nic& nic);

  sim::Network network_{0};
  std::vector<Nic> nics_;  // last: gone before the network
};

}  // namespace slime::bench
