// The engine in place of the loops: the same NICs and costs, the engine's own posting queue.
#include <algorithm>
#include <memory>
#include <vector>

#include "bench/posting/model.h"
#include "bench/posting/world.h"
#include "test/support/heap_count.h"
#include "test/support/load/bare_link.h"
#include "test/support/load/comm_load.h"

namespace slime::bench {
namespace {

constexpr uint64_t kWarmUp =
    6'000;  // works per rail: until all of the simulator's queues have been full

std::unique_ptr<Devices> make_devices(sim::Network& network, const std::string& name, uint32_t nics,
                                      const sim::RailModel& model) {
  std::vector<std::unique_ptr<Rail>> rails;
  for (uint32_t i = 0; i < nics; ++i) {
    RailCaps caps = sim_caps(name + "." + std::to_string(i));
    caps.ordered = false;
    rails.push_back(network.open_rail(caps, model));
  }
  return Devices::of_rails(std::move(rails), Settings(), network);
}

sim::RailModel with_jitter(sim::RailModel model) {
  model.jitter_ns = 3'000;
  return model;
}

// Both hosts of one thread, and their clock.
struct Hosts {
  Hosts(uint32_t nics_in, const Regime& regime, uint64_t seed)
      : nics(nics_in),
        network(seed),
        from(make_devices(network, "nic", nics, with_jitter(sender_model(regime)))),
        to(make_devices(network, "peer", nics, receiver_model())) {
    network.check_sources(false);
  }
  const uint32_t nics;
  sim::Network network;
  std::unique_ptr<Devices> from, to;
};

constexpr uint32_t kMadePerNic = 4;  // works of a turn

// Works submitted to a Link as fast as it has room for them.
class LinkLoad {
 public:
  explicit LinkLoad(Hosts& hosts)
      : hosts_(hosts), link_(*hosts.from, *hosts.to, hosts.nics, kWorkBytes, [&hosts] {
          hosts.network.advance(1000);
        }) {}
  void turn() {
    for (uint32_t i = 0; i < kMadePerNic * hosts_.nics && link_.submit(); ++i)
      hosts_.network.advance(kGenerateNs);
    link_.progress();
    link_.drain_peer();
  }
  uint64_t completed() const { return link_.done(); }
  const std::vector<const Channel*>& channels() const { return link_.channels(); }

 private:
  Hosts& hosts_;
  test::BareLink link_;
};

// Messages of 64 stripes, as many as a comm takes at once.
class MessageLoad {
 public:
  static constexpr uint32_t kStripes = 64;

  explicit MessageLoad(Hosts& hosts)
      : hosts_(hosts),
        load_(*hosts.from, *hosts.to, {hosts.nics, 0, size_t{kStripes} * kWorkBytes},
              [&hosts] { hosts.network.advance(1000); }) {}

  void turn() {
    load_.receive();
    if (load_.send()) hosts_.network.advance(kGenerateNs * kStripes);
    load_.test_receive();
    load_.test_send();
  }
  uint64_t completed() const { return load_.arrivals(); }
  const std::vector<const Channel*>& channels() const { return load_.pair().send_channels; }

 private:
  Hosts& hosts_;
  test::CommLoad load_;
};

template <typename Load>
void run_thread(const Shape& shape, const Regime& regime, const RunLength& length, uint64_t seed,
                Outcome* outcome) {
  const uint32_t nics = shape.nics_per_thread;
  Hosts hosts(nics, regime, seed);
  Load load(hosts);
  const auto run = [&load](uint64_t works) {
    for (const uint64_t end = load.completed() + works; load.completed() < end;) load.turn();
  };
  run(kWarmUp * nics);
  const RailTotals before = test::sum_counters(load.channels());
  const uint64_t started_ns = hosts.network.now_ns(), heap_before = test::heap_allocations();
  const uint64_t completed = load.completed();
  run(length.counted * nics);
  outcome->allocations += test::heap_allocations() - heap_before;
  const RailTotals totals = test::difference(test::sum_counters(load.channels()), before);
  outcome->works += totals.works;
  outcome->doorbells += totals.doorbells;
  outcome->futile += totals.futile_posts;
  outcome->polls += totals.polls;
  outcome->depth_max = std::max(outcome->depth_max, totals.queue_depth_max);
  const double line_rate = nics / static_cast<double>(kWireNs);  // works per ns
  outcome->line_share += static_cast<double>(load.completed() - completed) /
                         static_cast<double>(hosts.network.now_ns() - started_ns) / line_rate /
                         shape.threads;
}

template <typename Load>
Outcome run_threads(const Shape& shape, const Regime& regime, const RunLength& length,
                    uint64_t seed) {
  Outcome outcome;
  for (uint32_t i = 0; i < shape.threads; ++i) {
    run_thread<Load>(shape, regime, length, seed + i * 1000, &outcome);
  }
  return outcome;
}

}  // namespace

Outcome run_engine_link(const Shape& shape, const Regime& regime, const RunLength& length,
                        uint64_t seed) {
  return run_threads<LinkLoad>(shape, regime, length, seed);
}

Outcome run_engine_comms(const Shape& shape, const Regime& regime, const RunLength& length,
                         uint64_t seed) {
  return run_threads<MessageLoad>(shape, regime, length, seed);
}

}  // namespace slime::bench
