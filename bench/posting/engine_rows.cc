// The engine in place of the loops: the same NICs and costs, the engine's own posting queue.
#include <memory>
#include <string>
#include <vector>

#include "bench/posting/counted_run.h"
#include "bench/posting/model.h"
#include "bench/posting/world.h"
#include "test/support/load/bare_link.h"
#include "test/support/load/comm_load.h"

namespace slime::bench {
namespace {

std::unique_ptr<Devices> make_devices(sim::Network& network, const std::string& name, uint32_t nics,
                                      const sim::RailModel& model) {
  std::vector<std::unique_ptr<Rail>> rails;
  for (uint32_t i = 0; i < nics; ++i) {
    rails.push_back(network.open_rail(unordered_caps(name + "." + std::to_string(i)), model));
  }
  return Devices::of_rails(std::move(rails), Settings(), network);
}

// Both hosts of one thread, and their clock.
struct Hosts {
  Hosts(uint32_t nics_in, const Regime& regime, uint64_t seed)
      : nics(nics_in),
        network(seed),
        from(make_devices(network, "nic", nics, unordered_sender_model(regime))),
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
  LinkLoad(uint32_t nics, const Regime& regime, uint64_t seed)
      : hosts_(nics, regime, seed), link_(*hosts_.from, *hosts_.to, nics, kWorkBytes, [this] {
          hosts_.network.advance(1000);
        }) {}
  void turn() {
    for (uint32_t i = 0; i < kMadePerNic * hosts_.nics && link_.submit(); ++i)
      hosts_.network.advance(kGenerateNs);
    link_.progress();
    link_.drain_peer();
  }
  uint64_t completed() const { return link_.done(); }
  uint64_t now_ns() const { return hosts_.network.now_ns(); }
  const std::vector<const Channel*>& channels() const { return link_.channels(); }

 private:
  Hosts hosts_;
  test::BareLink link_;
};

// Messages of 64 stripes, as many as a comm takes at once.
class MessageLoad {
 public:
  static constexpr uint32_t kStripes = 64;

  MessageLoad(uint32_t nics, const Regime& regime, uint64_t seed)
      : hosts_(nics, regime, seed),
        load_(*hosts_.from, *hosts_.to, {nics, 0, size_t{kStripes} * kWorkBytes},
              [this] { hosts_.network.advance(1000); }) {}

  void turn() {
    load_.receive();
    if (load_.send()) hosts_.network.advance(kGenerateNs * kStripes);
    load_.test_receive();
    load_.test_send();
  }
  uint64_t completed() const { return load_.arrivals(); }
  uint64_t now_ns() const { return hosts_.network.now_ns(); }
  const std::vector<const Channel*>& channels() const { return load_.pair().send_channels; }

 private:
  Hosts hosts_;
  test::CommLoad load_;
};

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
