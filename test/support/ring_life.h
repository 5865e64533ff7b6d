// The life of two hosts and of links between them that have the rings of engines and nothing else,
// in virtual time: rails die and return, and links are replaced, at random.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "peer/rings.h"
#include "test/support/sim/lifeline.h"
#include "test/support/sim_hosts.h"

namespace slime::test {

class RingsEnd final : private LinkEnd {
 public:
  RingsEnd(SimHost& host, LinkParts parts)
      : link(*host.devices, host.device(), std::move(parts)), rings(link) {
    link.serve(*this);
  }

  Link link;
  Rings rings;

 private:
  Status on_arrived(size_t, uint32_t immediate, uint64_t) override {
    return rings.on_arrived(immediate);
  }
  OutboxPiece fence_record(const RailLife& life) override { return rings.report(life); }
  Status on_both_fenced(const RailLife& life) override {
    if (!rings.peer_report(life)) return link.status();
    link.rails().hand_back_works(life.rail);
    rings.count_again();
    return Status::kOk;
  }
};

class RingLife {
 public:
  // Begins anew, without a link.
  void reset(uint64_t seed) {
    random_ = sim::Random(seed);
    network.reset(seed);
    draw_rails();
    rails_ = 1 + static_cast<uint32_t>(below(kRails));
    turns_left_ = static_cast<uint32_t>(below(10));
  }
  uint64_t below(uint64_t bound) { return random_.up_to(bound - 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }

  RingsEnd& end(size_t side) { return *ends_[side]; }
  SimHost& host(size_t side) { return hosts_[side]; }
  // What is in the rings of the link before is forgotten, as in a peer that got another link.
  void make_link() {
    for (size_t side = 0; side < 2; ++side) {
      ends_[side].reset();
      while (hosts_[side].device().number_link() % 6 != 5) continue;
    }
    SimEnds ends = connect(network, hosts_[0], hosts_[1], rails_,
                           {Rings::kMemory, Rings::kMemory, {}, true, 0});
    ends.active.lifeline_seconds = ends.passive.lifeline_seconds = 20;
    ends.active.lifeline_dialer = std::make_unique<sim::LifelineCaller>(
        network, random_, sim::LifelineModel(), [this](std::unique_ptr<LifelineStream> stream) {
          ends_[1]->link.take_lifeline(std::move(stream));
        });
    ends_[0] = std::make_unique<RingsEnd>(hosts_[0], std::move(ends.active));
    ends_[1] = std::make_unique<RingsEnd>(hosts_[1], std::move(ends.passive));
    ++links;
  }
  void drop_link() {
    for (auto& end : ends_) end.reset();
  }
  // A bit of time, and sometimes a misfortune. True: the link has to be replaced.
  bool pass() {
    if (chance(50)) network.advance(below(2000));
    const bool replaced = turns_left_ > 0 && chance(3) && disturb();
    if (turns_left_ == 0) revive_all();
    const bool beside =
        ends_[0]->link.rails().up_count() == 0 || ends_[1]->link.rails().up_count() == 0;
    if (chance(20) && !network.step()) network.advance(beside ? 10'000 : 500'000);
    return replaced;
  }

  sim::Network network{1};
  uint64_t deaths = 0, links = 0;  // in all lives

 private:
  static constexpr size_t kRails = 3;

  static Settings quick_settings() {
    Settings settings;
    settings.rail_timeout = 0.002;
    settings.rail_retry = 20e-6;
    settings.connect_timeout = 0.001;
    settings.watermark = 4;
    return settings;
  }
  void draw_rails() {
    RailCaps caps;
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
    for (size_t side = 0; side < 2; ++side) {
      for (size_t i = 0; i < kRails; ++i) {
        caps.name = std::string(side == 0 ? "a." : "b.") + std::to_string(i);
        hosts_[side].rails[i]->configure(caps, model);
      }
    }
  }
  bool disturb() {
    --turns_left_;
    if (chance(30)) return revive_all(), true;
    const size_t i = below(rails_);
    for (SimHost& host : hosts_) {
      if (host.rails[i]->dead()) return host.rails[i]->revive(), false;
    }
    ++deaths;
    hosts_[below(2)].rails[i]->kill(sim::Death::kNoticed);
    return false;
  }
  void revive_all() {
    for (SimHost& host : hosts_) {
      for (sim::Rail* rail : host.rails) {
        if (rail->dead()) rail->revive();
      }
    }
  }

  sim::Random random_{1};
  std::array<SimHost, 2> hosts_ = {SimHost{network, kRails, RailCaps(), quick_settings(), "a"},
                                   SimHost{network, kRails, RailCaps(), quick_settings(), "b"}};
  std::array<std::unique_ptr<RingsEnd>, 2> ends_;
  uint32_t rails_ = 0, turns_left_ = 0;
};

}  // namespace slime::test
