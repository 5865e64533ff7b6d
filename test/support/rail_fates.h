// Two hosts in virtual time, whose rails die and return at random.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "peer/ring.h"
#include "test/support/sim/lifeline.h"
#include "test/support/sim_hosts.h"

namespace slime::test {

class RailFates {
 public:
  static constexpr size_t kRails = 3;

  // Begins anew: rails are drawn, and how many of them a link has.
  void reset(uint64_t seed) {
    random = sim::Random(seed);
    network.reset(seed);
    draw_rails();
    rails_ = 1 + static_cast<uint32_t>(below(kRails));
    turns_left_ = static_cast<uint32_t>(below(10));
  }
  uint64_t below(uint64_t bound) { return random.up_to(bound - 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }
  // Both ends of a link whose owners have so much memory. `answer` gives its passive end the
  // lifeline that the active one has dialed.
  SimEnds make_link(const LinkMemoryBytes& memory, const OwnerWords& words,
                    sim::LifelineCaller::Answer answer) {
    // Which rail a link prefers goes by its number (Link): the same one in each life. 6 is a
    // multiple of all counts of rails.
    for (SimHost& host : hosts) {
      while (host.device().number_link() % 6 != 5) continue;
    }
    SimEnds ends = connect(network, hosts[0], hosts[1], rails_, {memory, memory, words, true, 0});
    ends.active.lifeline_seconds = ends.passive.lifeline_seconds = 20;
    ends.active.lifeline_dialer = std::make_unique<sim::LifelineCaller>(
        network, random, sim::LifelineModel(), std::move(answer));
    ++links;
    return ends;
  }
  // A bit of time, and sometimes a misfortune. True: the link has to be replaced. dark(): no rail
  // of it is up at one end.
  template <typename Dark>
  bool pass(Dark dark) {
    if (chance(50)) network.advance(below(2000));
    const bool replaced = turns_left_ > 0 && chance(3) && disturb();
    if (turns_left_ == 0) revive_all();
    if (chance(20) && !network.step()) network.advance(dark() ? 10'000 : 500'000);
    return replaced;
  }
  bool quiet() const { return turns_left_ == 0; }  // no misfortune comes any more

  sim::Random random{1};
  sim::Network network{1};
  std::array<SimHost, 2> hosts = {SimHost{network, kRails, RailCaps(), quick_settings(), "a"},
                                  SimHost{network, kRails, RailCaps(), quick_settings(), "b"}};
  uint64_t deaths = 0, links = 0;  // in all lives

 private:
  static Settings quick_settings() {
    Settings settings;
    settings.rail_timeout = 0.002;
    settings.rail_retry = 20e-6;
    settings.connect_timeout = 0.001;
    settings.watermark = 4;
    settings.min_stripe = 512;
    return settings;
  }
  void draw_rails() {
    RailCaps caps;
    caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
    caps.max_outstanding_reads = 4;
    caps.memory_kinds |= static_cast<uint32_t>(MemoryKind::kCuda);
    if (chance(30)) caps.max_message_bytes = Ring::kMostSlots * Ring::kSlotBytes;
    caps.ordered = chance(50);
    caps.arrives_unpolled = chance(50);
    caps.confirms_in_hardware = caps.arrives_unpolled && chance(50);
    caps.send_queue_depth = chance(20) ? 2 : 16;
    caps.max_batch = 8;
    caps.goes_on_after_refusal = chance(70);
    sim::RailModel model;
    model.latency_ns = 500 + below(5000);
    model.jitter_ns = caps.ordered ? 0 : below(20'000);
    model.notice_ns = below(30'000);
    model.one_sided_ppm = chance(50) ? 500'000 : 0;
    model.needs_flush = model.fence_flushes = true;
    for (size_t side = 0; side < 2; ++side) {
      for (size_t i = 0; i < kRails; ++i) {
        caps.name = std::string(side == 0 ? "a." : "b.") + std::to_string(i);
        hosts[side].rails[i]->configure(caps, model);
      }
    }
  }
  bool disturb() {
    --turns_left_;
    if (chance(30)) return revive_all(), true;
    const size_t i = below(rails_);
    for (SimHost& host : hosts) {
      if (host.rails[i]->dead()) return host.rails[i]->revive(), false;
    }
    ++deaths;
    hosts[below(2)].rails[i]->kill(sim::Death::kNoticed);
    return false;
  }
  void revive_all() {
    for (SimHost& host : hosts) {
      for (sim::Rail* rail : host.rails) {
        if (rail->dead()) rail->revive();
      }
    }
  }

  uint32_t rails_ = 0, turns_left_ = 0;
};

}  // namespace slime::test
