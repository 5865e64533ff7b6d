#include "link/liveness.h"

#include <utility>

#include "base/log.h"

namespace slime {
namespace {

constexpr uint64_t kCarrierIntervalNs = 100'000'000;

}  // namespace

void RailLiveness::probe(size_t i, Probe probe) {
  rails_[i].signs.begin_probe(probe == Probe::kAsk, rails_.clock().polled_ns);
  const auto part = static_cast<uint32_t>(i);
  ControlWork control{ControlOp::kProbe, probe == Probe::kAsk, this, part, WorkKind::kProbe};
  if (probe == Probe::kWithBytes) {
    control.piece = {rails_.memory().probe_to_peer(rails_.count()), kProbeBytes};
  }
  rails_.submit_control(i, control);
}

// At most one answer is under way, however often the peer asks.
void RailLiveness::answer(size_t i) {
  LinkRail& rail = rails_[i];
  if (!rail.up() || rail.signs.answering() || rail.queue.room() == 0) return;
  rail.signs.set_answering(true);
  const auto part = kOfAnswer + static_cast<uint32_t>(i);
  rails_.submit_control(i, {ControlOp::kAnswer, 0, this, part});
}

bool RailLiveness::has_delivered(size_t i) {
  LinkRail& rail = rails_[i];
  if (!rail.up()) return false;
  const bool proven = !rail.signs.unproven() && !rail.signs.probing();
  if (proven || !rail.channel->silent_for(0)) return true;
  if (!rail.signs.probing() && rail.queue.room() > 0) probe(i, Probe::kPlain);
  return false;
}

// If a rail dies silently, its unconfirmed works do not show it. So a probe, which is confirmed,
// follows them. Where this end must notice that the peer has lost all rails, one goes over each
// rail that has been quiet for long.
void RailLiveness::prove_rails(bool quiet_ones) {
  const uint64_t rail_timeout_ns = rails_.context().rail_timeout_ns,
                 now_ns = rails_.clock().polled_ns;
  for (size_t i = 0; i < rails_.count(); ++i) {
    const RailSigns& signs = rails_[i].signs;
    const uint64_t last_ns = std::max(signs.heard_ns(), signs.busy_since_ns());
    const bool quiet = quiet_ones && now_ns - last_ns >= 4 * rail_timeout_ns;
    if (!rails_[i].up() || !(quiet || signs.unproven_for(rail_timeout_ns / 4, now_ns))) continue;
    if (!signs.probing() && rails_[i].queue.room() > 0) probe(i, Probe::kPlain);
  }
}

// Whether another rail works while rail `i` is silent. Only signs from the second half of the
// time-out count: earlier ones may have been sent before the path failed. A rail without such a
// sign gets a probe. Its answer is the completion, or, where the peer's NIC completes works by
// itself, a work of the peer's engine. A peer that is merely stopped answers on no rail. The silent
// rail gets a probe too, so that its path owes an answer.
bool RailLiveness::others_live(size_t i) {
  const uint64_t rail_timeout_ns = rails_.context().rail_timeout_ns,
                 now_ns = rails_.clock().polled_ns;
  const uint64_t from_ns = rails_[i].signs.busy_since_ns() + rail_timeout_ns / 2;
  bool any = false;
  for (size_t k = 0; k < rails_.count(); ++k) {
    const LinkRail& other = rails_[k];
    if (!other.up()) continue;
    const RailSigns& signs = other.signs;
    const bool lives = k != i && signs.heard_ns() > from_ns;
    any |= lives;
    const bool asked = signs.asked_within(rail_timeout_ns, now_ns);
    if (!lives && !signs.probing() && !asked && other.queue.room() > 0) {
      probe(k, other.confirmed_by_nic ? Probe::kAsk : Probe::kPlain);
    }
  }
  return any;
}

// A rail on which nothing completes while others carry traffic is dead, even without an error.
// Where the link can do without any rail, so is one that is silent for twice as long, unless a NIC
// confirms its works: that gives a dead path up itself, and waits for a process that is stopped.
// But if its NIC still gets acknowledgements (silent_for), the work merely takes long.
std::optional<Error> RailLiveness::judge_silence(size_t i, bool alone_too) {
  const uint64_t limit_ns = rails_.context().rail_timeout_ns, now_ns = rails_.clock().polled_ns;
  RailSigns& signs = rails_[i].signs;
  const uint64_t silent_ns = now_ns - signs.busy_since_ns();
  if (silent_ns < limit_ns / 2) return std::nullopt;
  const bool others = others_live(i);
  const bool may_be_alone = alone_too && !rails_[i].confirmed_by_nic;
  const bool evident = others ? silent_ns >= limit_ns : may_be_alone && silent_ns >= 2 * limit_ns;
  if (!evident) return std::nullopt;
  if (!signs.may_judge(limit_ns / 16, now_ns)) return std::nullopt;
  if (!rails_[i].channel->silent_for(limit_ns / 2)) return std::nullopt;
  return make_error(Status::kTimeout, 0,
                    "nothing completed for %.1f s%s; check this path (cable, switch port, routing, "
                    "firewall)",
                    static_cast<double>(silent_ns) * 1e-9,
                    others ? " while other rails carried on" : "");
}

bool RailLiveness::look_at_carriers() {
  carriers_due_ns_ = rails_.clock().now_ns + kCarrierIntervalNs;
  bool usable = false;
  for (LinkRail& rail : rails_.all()) {
    rail.carrier.look(rail.up());
    usable |= rail.up() && !rail.carrier.lost();
  }
  const LinkContext& context = rails_.context();
  const bool all_lost = !usable && rails_.up_count() > 0;
  if (all_lost && !warned_of_carriers_) {
    SLIME_WARN(
        "peer %s, device %s: no rail has a carrier; works wait for %.0f s for one "
        "(NCCL_SLIME_PEER_TIMEOUT); check cables, switch ports and `ip link`",
        context.peer.c_str(), context.device_name(), context.settings().peer_timeout);
  }
  warned_of_carriers_ = all_lost;
  return usable;
}

}  // namespace slime
