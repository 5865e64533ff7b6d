// Which rails reach the switches, asked before the first sum.
#include <algorithm>
#include <vector>

#include "base/log.h"
#include "collnet/comm/setup.h"

#include "settings/times.h"

namespace slime {
namespace {

constexpr uint64_t kProbeAgainNs = 20'000'000;

uint8_t bit(uint32_t rail) { return static_cast<uint8_t>(1u << rail); }
uint8_t all_of(uint32_t rails) { return static_cast<uint8_t>((1u << rails) - 1); }

// Asks every switch about a slot on each rail. A switch answers the children of its job.
//
// States: by switch, the rails that were asked (asked_) and those of them without an answer
// (missing_); on_datagram() takes bits out of missing_, and complete() is true when none is left.
class RailProbe final : private DatagramUser {
 public:
  RailProbe(UdpRails& port, std::span<SwitchAttachment* const> attachments, uint32_t rails)
      : port_(port), attachments_(attachments), rails_(rails), missing_(attachments.size()) {
    // A rail without a slot of that switch carries nothing to it, so it is not asked.
    for (size_t i = 0; i < attachments.size(); ++i) {
      for (uint32_t rail = 0; rail < rails; ++rail) {
        if (slot_on(i, rail) < attachments[i]->job().slots) missing_[i] |= bit(rail);
      }
    }
    asked_ = missing_;
  }
  bool complete() const {
    return std::ranges::all_of(missing_, [](uint8_t rails) { return rails == 0; });
  }
  bool all_silent() const { return missing_ == asked_; }
  // Rails that do not reach switch i. None if all of its rails are silent and another switch
  // answers: then the switch has failed, and not a rail.
  uint8_t silent_rails(size_t i) const {
    return missing_[i] == asked_[i] && !all_silent() ? 0 : missing_[i];
  }
  // Rails that reach every switch that answers; none if none does.
  uint8_t working() const {
    if (all_silent() && !complete()) return 0;
    uint8_t work = all_of(rails_);
    for (size_t i = 0; i < missing_.size(); ++i) {
      work &= static_cast<uint8_t>(~silent_rails(i));
    }
    return work;
  }
  void ask() {
    for (size_t i = 0; i < attachments_.size(); ++i) {
      for (uint32_t rail = 0; rail < rails_; ++rail) {
        if ((missing_[i] & bit(rail)) != 0) ask(i, rail);
      }
    }
    port_.flush();
  }
  void receive(uint64_t now_ns) { port_.receive(*this, now_ns); }

 private:
  uint32_t slot_on(size_t i, uint32_t rail) const {
    return rail * attachments_[i]->job().route.shards;
  }
  void ask(size_t i, uint32_t rail) {
    const WorkerOptions& job = attachments_[i]->job();
    const sap::Header header = job.route.header(sap::Type::kQuery, job.child, slot_on(i, rail));
    std::byte packet[sap::kHeaderBytes];
    sap::encode(header, packet);
    attachments_[i]->send({Destination::Kind::kShard, 0, rail}, packet);
  }
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress&, uint64_t) override {
    sap::Header header;
    if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
    for (size_t i = 0; i < attachments_.size(); ++i) {
      const JobRoute& route = attachments_[i]->job().route;
      const bool ours = route.names(header) && header.token == route.token;
      if (ours && header.type == sap::Type::kStatus) {
        missing_[i] &= static_cast<uint8_t>(~bit(route.rail_of(header.slot)));
      }
    }
  }

  UdpRails& port_;
  const std::span<SwitchAttachment* const> attachments_;
  const uint32_t rails_;
  // By attachment: rails, a bit each, that were asked, and that have not answered.
  std::vector<uint8_t> asked_, missing_;
};

void warn_of(const CommConfig& config, const SwitchAttachment& attachment, uint32_t silent_rail) {
  const ShardPorts data = attachment.data();
  SLIME_WARN(
      "%s: nothing came back from the switch's data address, %s, over %s, so CollNet does "
      "without it; check that both ends have a route, and rp_filter, or set "
      "NCCL_SLIME_SWITCH_RAILS=1",
      config.name.c_str(), control::shard_range(data.first, data.count).c_str(),
      config.port->name_of(silent_rail).c_str());
}

// A rail that is silent is waited for a second longer than the first that answers: a switch that is
// busy answers on none. If all are silent, half of the time that is left remains for the
// members to agree on that.
uint8_t answering_rails(const Setup& setup) {
  const uint32_t rails = setup.config->members.rails;
  std::vector<SwitchAttachment*> asked;
  for (const auto& attachment : setup.attachments) {
    if (attachment->on_switch()) asked.push_back(attachment.get());
  }
  RailProbe probe(*setup.config->port, asked, rails);
  const Clock& clock = setup.devices.clock();
  uint64_t ask_ns = clock.now_ns();
  Deadline end(clock, std::min(times::kTrialSum, setup.left_ns() / 2));
  (void)step_until(clock, end, [&](uint64_t now_ns) {
    if (now_ns >= ask_ns) {
      probe.ask();
      ask_ns = now_ns + kProbeAgainNs;
    }
    const bool all_silent = probe.all_silent();
    probe.receive(now_ns);
    const bool first = all_silent && !probe.all_silent();
    if (first && now_ns + times::kOtherRails < end.end_ns()) end.restart(times::kOtherRails);
    return probe.complete();
  });
  for (size_t i = 0; i < asked.size(); ++i) {
    for (uint32_t rail = 0; rail < rails; ++rail) {
      if ((probe.silent_rails(i) & bit(rail)) != 0) warn_of(*setup.config, *asked[i], rail);
    }
  }
  return probe.working();
}

}  // namespace

void use_rails(CommConfig* config, RankAddresses addresses) {
  config->members = std::move(addresses);
  const uint32_t rails = config->members.rails;
  if (config->port->count() > rails) {
    SLIME_INFO("%s: %u of %u rails to the switch are used; another rank has no more",
               config->name.c_str(), rails, config->port->count());
    config->port->keep(all_of(rails));
  }
  for (uint32_t rail = 0; rail < rails && rails > 1; ++rail) {
    SLIME_INFO("%s: rail %u to the switch is %s", config->name.c_str(), rail,
               config->port->name_of(rail).c_str());
  }
}

Result<bool> all_rails_work(const Setup& setup) {
  const uint32_t rails = setup.config->members.rails;
  if (rails == 1 || lost_switches(setup.attachments) == setup.attachments.size()) return true;
  std::vector<uint8_t> answering(setup.ring->size());
  const uint8_t own = answering_rails(setup);
  answering[setup.ring->rank()] = own;
  auto gathered = setup.gather(&answering);
  if (!gathered) return fail(std::move(gathered.error()));
  const bool work =
      std::ranges::all_of(answering, [&](uint8_t one) { return one == all_of(rails); });
  // Where no rail works, rail 0 stays, and the first sum fails with the error about the switch.
  if (!work) setup.config->port->keep(own != 0 ? own : 1);
  return work;
}

}  // namespace slime
