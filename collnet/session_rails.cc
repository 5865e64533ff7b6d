// A session over several rails of its device: which there are, whether they reach the switches, and
// what is done when one does not.
#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "collnet/session.h"

namespace slime {
namespace {

constexpr uint64_t kOthersNs = 1'000'000'000;  // for a rail to answer, when another one has
constexpr uint64_t kProbeAgainNs = 20'000'000;

uint8_t all_of(uint32_t rails) { return static_cast<uint8_t>((1u << rails) - 1); }

// Asks every switch about a slot on each rail. A switch answers the children of its job.
class RailProbe final : private DatagramUser {
 public:
  RailProbe(UdpRails& port, std::span<Share* const> shares, uint32_t rails)
      : port_(port), shares_(shares), rails_(rails), answered_(shares.size()) {
    // Without a slot there is nothing that the rail would have to carry.
    for (size_t i = 0; i < shares.size(); ++i) {
      for (uint32_t rail = 0; rail < rails; ++rail) {
        if (!shares[i]->carries(rail)) answered_[i] |= bit(rail);
      }
    }
    idle_ = answered_;
  }
  bool complete() const {
    return std::ranges::all_of(answered_, [&](uint8_t one) { return one == all_of(rails_); });
  }
  // On all rails: then the switch is to blame, and not a rail.
  bool is_silent(size_t share) const { return answered_[share] == idle_[share]; }
  bool all_silent() const { return answered_ == idle_; }
  bool answers(size_t share, uint32_t rail) const { return (answered_[share] & bit(rail)) != 0; }
  // Rails that reach every switch that is not silent; none if all switches are.
  uint8_t working() const {
    if (all_silent() && !complete()) return 0;
    uint8_t work = all_of(rails_);
    for (size_t i = 0; i < answered_.size(); ++i) {
      if (!is_silent(i)) work &= answered_[i];
    }
    return work;
  }
  void ask() {
    for (size_t i = 0; i < shares_.size(); ++i) {
      for (uint32_t rail = 0; rail < rails_; ++rail) {
        if (!answers(i, rail)) shares_[i]->probe(rail);
      }
    }
    port_.flush();
  }
  void hear(uint64_t now_ns) { port_.receive(*this, now_ns); }

 private:
  static uint8_t bit(uint32_t rail) { return static_cast<uint8_t>(1u << rail); }
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress&, uint64_t) override {
    sap::Header header;
    if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
    for (size_t i = 0; i < shares_.size(); ++i) {
      if (const auto rail = shares_[i]->probed(header)) answered_[i] |= bit(*rail);
    }
  }

  UdpRails& port_;
  const std::span<Share* const> shares_;
  const uint32_t rails_;
  std::vector<uint8_t> answered_, idle_;  // by share: rails, a bit each
};

}  // namespace

std::vector<UdpRail> Session::rails_of_device(int device) const {
  std::vector<std::string> hosts;
  for (const Rail* rail : fabric_.device(device)->rails()) {
    hosts.push_back(rail->caps().oob_address);
  }
  return udp_rails_of(hosts);
}

// As many rails as all have.
void Session::take(SessionAddresses addresses) {
  team_.members = std::move(addresses);
  const uint32_t rails = team_.members.rails;
  if (team_.port->count() > rails) {
    SLIME_INFO("%s: %u of %u rails to the switch are used; another rank has no more",
               name().c_str(), rails, team_.port->count());
    team_.port->keep(all_of(rails));
  }
  for (uint32_t rail = 0; rail < rails && rails > 1; ++rail) {
    SLIME_INFO("%s: rail %u to the switch is %s", name().c_str(), rail,
               team_.port->name_of(rail).c_str());
  }
}

// The same answer at all ranks. False: this one or others have fewer rails now.
Result<bool> Session::all_rails_work() {
  const uint32_t rails = team_.members.rails;
  if (rails == 1 || lost_switches() == shares_.size()) return true;
  std::vector<uint8_t> answering(ring_->size());
  const uint8_t own = answering_rails();
  answering[ring_->rank()] = own;
  auto told = ring_->all_gather(std::as_writable_bytes(std::span(answering)), 1, deadline_ns_);
  if (!told) return fail(std::move(told.error()));
  bool work = true;
  for (const uint8_t one : answering) work = work && one == all_of(rails);
  // Where none works, the first sum is what fails, and says so.
  if (!work) team_.port->keep(own != 0 ? own : 1);
  return work;
}

void Session::warn_of(const Share& share, uint32_t silent_rail) const {
  const ShardPorts data = share.data();
  SLIME_WARN(
      "%s: nothing came back from the switch's data address, %s, over %s, so CollNet does "
      "without it; check that both ends have a route, and rp_filter, or set "
      "NCCL_SLIME_SWITCH_RAILS=1",
      name().c_str(), control::shard_range(data.first, data.count).c_str(),
      team_.port->name_of(silent_rail).c_str());
}

// A rail that is silent is waited for a second longer than the first that answers: a switch that is
// busy answers on none. If all are silent, half of the time is left for the members to say so.
uint8_t Session::answering_rails() {
  std::vector<Share*> asked;
  for (const auto& share : shares_) {
    if (share->on_switch()) asked.push_back(share.get());
  }
  RailProbe probe(*team_.port, asked, team_.members.rails);
  uint64_t now_ns = fabric_.clock().now_ns(), ask_ns = now_ns;
  const uint64_t left_ns = deadline_ns_ - std::min(now_ns, deadline_ns_);
  uint64_t until_ns = now_ns + std::min(kTrialTimeoutNs, left_ns / 2);
  for (bool late = false; !probe.complete() && !late;) {
    late = now_ns >= until_ns;  // before the look: who was held up looks once more
    if (now_ns >= ask_ns) {
      probe.ask();
      ask_ns = now_ns + kProbeAgainNs;
    }
    const bool all_silent = probe.all_silent();
    probe.hear(now_ns);
    sched_yield();
    now_ns = fabric_.clock().now_ns();
    if (all_silent && !probe.all_silent()) until_ns = std::min(until_ns, now_ns + kOthersNs);
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    if (probe.is_silent(i) && !probe.all_silent()) continue;
    for (uint32_t rail = 0; rail < team_.members.rails; ++rail) {
      if (!probe.answers(i, rail)) warn_of(*asked[i], rail);
    }
  }
  return probe.working();
}

// All hear the switches over all rails.
void Session::hear_switches() {
  std::vector<ShardPorts> switches;
  for (const auto& share : shares_) switches.push_back(share->data());
  team_.port->set_switches(switches);
}

}  // namespace slime
