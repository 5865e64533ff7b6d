// libslime in place of the loops: two peers (peer/peer.h), whose requests move scattered pages of
// kWorkBytes over the same NICs and costs. Their lists are resolved already, as those of a plan.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "bench/posting/counted_run.h"
#include "bench/posting/model.h"
#include "bench/posting/world.h"
#include "peer/engine/request_memory.h"
#include "test/support/peer_life.h"
#include "test/support/sim/lifeline.h"

namespace slime::bench {
namespace {

constexpr uint32_t kPages = 256;  // of a request; each is a work
constexpr size_t kOpen = 4;       // requests, for each NIC
constexpr std::byte kFromId{1}, kToId{2};

RailCaps caps_of_peers() {
  RailCaps caps = unordered_caps("");
  caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
  caps.max_outstanding_reads = kQueueDepth;
  caps.confirms_in_hardware = true;
  return caps;
}

// Two peers of one thread, one of which keeps kOpen requests for each NIC under way.
class Peers {
 public:
  Peers(uint32_t nics, const Regime& regime, uint64_t seed, Opcode opcode)
      : nics_(nics),
        opcode_(opcode),
        network_(seed),
        random_(seed),
        hosts_{test::SimHost{network_, nics, caps_of_peers(), Settings(), "nic"},
               test::SimHost{network_, nics, caps_of_peers(), Settings(), "peer"}},
        memory_(4 * size_t{kWorkBytes}),
        ends_{std::make_unique<test::PeerEnd>(hosts_[0], kFromId, kToId, nullptr, &requests_),
              std::make_unique<test::PeerEnd>(hosts_[1], kToId, kFromId, nullptr, &requests_)} {
    network_.check_sources(false);
    for (uint32_t i = 0; i < nics; ++i) {
      hosts_[0].rails[i]->configure(hosts_[0].rails[i]->caps(), unordered_sender_model(regime));
      hosts_[1].rails[i]->configure(hosts_[1].rails[i]->caps(), receiver_model());
    }
    channels_ = test::connect_peers(network_, random_, hosts_, ends_, nics_);
    region_ = ends_[0]->make_region(memory_, 0, 0);
    offer();
  }
  void turn() {
    while (open_.size() < kOpen * nics_) begin();
    move();
  }
  uint64_t completed() const { return pages_; }
  uint64_t now_ns() const { return network_.now_ns(); }
  const std::vector<const Channel*>& channels() const { return channels_; }

 private:
  void offer() {
    constexpr uint8_t kRights = kRemoteRead | kRemoteWrite;
    RegionAddress address;
    address.nonce = 1;
    // The other end's table of regions keeps this region for as long as the end is there.
    address.region =
        ends_[1]->messages.regions.add(ends_[1]->make_region(memory_, kRights, address.nonce));
    address.base = reinterpret_cast<uint64_t>(memory_.data());
    address.bytes = memory_.size();
    address.rights = kRights;
    remote_ = std::make_shared<Remote>(address);
  }
  void begin() {
    auto request = requests_.make<PeerRequest>(&requests_);
    request->opcode = opcode_;
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

  const uint32_t nics_;
  const Opcode opcode_;
  sim::Network network_;
  sim::Random random_;
  std::array<test::SimHost, 2> hosts_;
  RequestMemory requests_;
  std::vector<std::byte> memory_;  // of both
  std::array<std::unique_ptr<test::PeerEnd>, 2> ends_;
  std::shared_ptr<Region> region_;
  std::shared_ptr<Remote> remote_;
  std::vector<const Channel*> channels_;
  std::vector<std::shared_ptr<PeerRequest>> open_;
  uint64_t pages_ = 0;  // moved so far
};

}  // namespace

Outcome run_peer_writes(const Shape& shape, const Regime& regime, const RunLength& length,
                        uint64_t seed) {
  return run_threads<Peers>(shape, regime, length, seed, Opcode::kWrite);
}

Outcome run_peer_reads(const Shape& shape, const Regime& regime, const RunLength& length,
                       uint64_t seed) {
  return run_threads<Peers>(shape, regime, length, seed, Opcode::kRead);
}

}  // namespace slime::bench
