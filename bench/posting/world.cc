#include "bench/posting/world.h"

#include <array>

namespace slime::bench {

World::World(const Regime& regime, uint32_t nics) {
  sim::RailModel model = sender_model(regime);
  model.rate_mbps = 0;
  model.wire_work_ns = kWireNs;
  sim::RailModel peer_model = receiver_model();
  peer_model.rate_mbps = 0;
  nics_.resize(nics);
  for (uint32_t i = 0; i < nics; ++i) {
    Nic& nic = nics_[i];
    nic.rail = network_.open_rail(sim_caps("nic" + std::to_string(i)), model);
    nic.peer_rail = network_.open_rail(sim_caps("peer" + std::to_string(i)), peer_model);
    connect(nic);
  }
}

void World::connect(Nic& nic) {
  nic.channel = test::value_of(nic.rail->open_channel({true, false}));
  nic.peer = test::value_of(nic.peer_rail->open_channel({false, false}));
  for (int tries = 0;; ++tries) {
    const Status a = nic.channel->connect(nic.peer->address());
    const Status b = nic.peer->connect(nic.channel->address());
    if (a == Status::kOk && b == Status::kOk) return;
    if (tries == 1000) test::give_up(make_error(Status::kInternal, 0, "sim rails do not connect"));
    network_.advance(1000);
  }
}

void World::drain_peers() {
  std::array<Done, 64> done;
  for (Nic& nic : nics_) {
    for (size_t count = done.size(); count == done.size();) {
      if (nic.peer->poll(done, &count) != Status::kOk) test::give_up(nic.peer->failure());
    }
  }
}

RailTotals World::totals() const {
  RailTotals sum;
  for (const Nic& nic : nics_) sum.add(snapshot(nic.channel->counters));
  return sum;
}

}  // namespace slime::bench
