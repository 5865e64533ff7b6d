// libslime in place of the loops: two peers (peer/peer.h), whose requests move scattered pages of
// kWorkBytes over the same NICs and costs. Their lists are resolved already, as those of a plan.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "bench/posting/model.h"
#include "bench/posting/world.h"
#include "peer/engine/request_memory.h"
#include "test/support/heap_count.h"
#include "test/support/load/bare_link.h"
#include "test/support/peer_life.h"
#include "test/support/sim/lifeline.h"

namespace slime::bench {
namespace {

constexpr uint32_t kPages = 256;                       // of a request
constexpr size_t kOpen = 4;                            // requests, for each NIC
constexpr uint64_t kWarmUp = 6'000, kCounted = 4'000;  // pages, for each NIC
constexpr std::byte kFromId{1}, kToId{2};

RailCaps caps_of_peers() {
  RailCaps caps = sim_caps("");
  caps.ordered = false;
  caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
  caps.max_outstanding_reads = kQueueDepth;
  caps.confirms_in_hardware = true;
  return caps;
}

class Peers {
 public:
  Peers(uint32_t nics, const Regime& regime, uint64_t seed)
      : network_(seed),
        random_(seed),
        hosts_{test::SimHost{network_, nics, caps_of_peers(), Settings(), "nic"},
               test::SimHost{network_, nics, caps_of_peers(), Settings(), "peer"}},
        memory_(4 * size_t{kWorkBytes}),
        ends_{std::make_unique<test::PeerEnd>(hosts_[0], kFromId, kToId, nullptr),
              std::make_unique<test::PeerEnd>(hosts_[1], kToId, kFromId, nullptr)} {
    network_.check_sources(false);
    sim::RailModel sender = sender_model(regime);
    sender.jitter_ns = 3'000;
    for (uint32_t i = 0; i < nics; ++i) {
      hosts_[0].rails[i]->configure(hosts_[0].rails[i]->caps(), sender);
      hosts_[1].rails[i]->configure(hosts_[1].rails[i]->caps(), receiver_model());
    }
    make_link(nics);
    region_ = ends_[0]->make_region(memory_, 0, 0);
    offer();
  }
  void begin(Opcode opcode) {
    auto request = requests_.make<PeerRequest>(&requests_);
    request->opcode = opcode;
    request->remotes.push_back(remote_);
    request->regions.push_back(region_);
    for (uint32_t i = 0; i < kPages; ++i) {
      const uint64_t offset = i % 2 * 2 * kWorkBytes;  // so that no page goes on where one ends
      request->append(
          {memory_.data() + offset, &region_->memory, remote_.get(), offset, kWorkBytes});
    }
    network_.advance(kGenerateNs * kPages);
    open_.push_back(request);
    (void)ends_[0]->peer().submit(std::move(request));
  }
  void move() {
    for (auto& end : ends_) end->move();
    std::erase_if(open_, [this](const auto& request) {
      if (!request->done()) return false;
      pages_ += kPages;
      return true;
    });
  }
  size_t open() const { return open_.size(); }
  uint64_t pages() const { return pages_; }  // moved so far
  uint64_t now_ns() const { return network_.now_ns(); }
  const std::vector<const Channel*>& channels() const { return channels_; }

 private:
  void make_link(uint32_t nics) {
    const LinkMemoryBytes memory = Rings::kMemory;
    test::SimEnds made =
        test::connect(network_, hosts_[0], hosts_[1], nics, {memory, memory, {}, true, 0});
    made.active.lifeline_dialer =
        std::make_unique<sim::LifelineCaller>(network_, random_, sim::LifelineModel(), [](auto) {});
    made.active.words = ends_[0]->words(*ends_[1]);
    made.passive.words = ends_[1]->words(*ends_[0]);
    for (const auto& channel : made.active.channels) channels_.push_back(channel.channel.get());
    ends_[0]->attach(std::move(made.active));
    ends_[1]->attach(std::move(made.passive));
  }
  void offer() {
    constexpr uint8_t kRights = kRemoteRead | kRemoteWrite;
    theirs_ = ends_[1]->make_region(memory_, kRights, 1);
    handle_ = ends_[1]->messages.regions.add(theirs_);
    RegionAddress address;
    address.region = handle_;
    address.nonce = 1;
    address.base = reinterpret_cast<uint64_t>(memory_.data());
    address.bytes = memory_.size();
    address.rights = kRights;
    remote_ = std::make_shared<Remote>(address);
  }

  sim::Network network_;
  sim::Random random_;
  std::array<test::SimHost, 2> hosts_;
  RequestMemory requests_;
  std::vector<std::byte> memory_;  // of both
  std::array<std::unique_ptr<test::PeerEnd>, 2> ends_;
  std::shared_ptr<Region> region_, theirs_;
  std::shared_ptr<Remote> remote_;
  uint64_t handle_ = 0;
  std::vector<const Channel*> channels_;
  std::vector<std::shared_ptr<PeerRequest>> open_;
  uint64_t pages_ = 0;
};

void run_thread(const Shape& shape, const Regime& regime, Opcode opcode, uint64_t seed,
                Outcome* outcome) {
  const uint32_t nics = shape.nics_per_thread;
  Peers peers(nics, regime, seed);
  const auto run = [&](uint64_t pages) {
    for (const uint64_t end = peers.pages() + pages * nics; peers.pages() < end; peers.move()) {
      if (peers.open() < kOpen * nics) peers.begin(opcode);
    }
  };
  run(kWarmUp);
  const RailTotals before = test::sum_counters(peers.channels());
  const uint64_t began_ns = peers.now_ns(), heap_before = test::heap_allocations();
  const uint64_t pages = peers.pages();
  run(kCounted);
  outcome->allocations += test::heap_allocations() - heap_before;
  const RailTotals totals = test::difference(test::sum_counters(peers.channels()), before);
  outcome->works += totals.works;
  outcome->doorbells += totals.doorbells;
  outcome->futile += totals.futile_posts;
  outcome->polls += totals.polls;
  outcome->depth_max = std::max(outcome->depth_max, totals.queue_depth_max);
  outcome->line_share += static_cast<double>(peers.pages() - pages) /
                         static_cast<double>(peers.now_ns() - began_ns) * kWireNs / nics /
                         shape.threads;
}

Outcome run(const Shape& shape, const Regime& regime, Opcode opcode, uint64_t seed) {
  Outcome outcome;
  for (uint32_t i = 0; i < shape.threads; ++i) {
    run_thread(shape, regime, opcode, seed + i * 1000, &outcome);
  }
  return outcome;
}

}  // namespace

Outcome run_peer_writes(const Shape& shape, const Regime& regime, const RunLength&, uint64_t seed) {
  return run(shape, regime, Opcode::kWrite, seed);
}

Outcome run_peer_reads(const Shape& shape, const Regime& regime, const RunLength&, uint64_t seed) {
  return run(shape, regime, Opcode::kRead, seed);
}

}  // namespace slime::bench
