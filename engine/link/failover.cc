// What a Link does when a rail dies. The order of the steps is what keeps it safe: see link.h.

#include <algorithm>
#include <array>
#include <bit>

#include "base/log.h"
#include "engine/link/link.h"

namespace slime {
namespace {

constexpr uint64_t kCarrierIntervalNs = 100'000'000;
constexpr uint64_t kStableLifePauses = 3;  // a life as long as this forgets earlier failures

}  // namespace

Status Link::fail_rail(size_t i, Error why) {
  LinkRail& rail = rails_[i];
  why = with_carrier(rail, std::move(why));
  if (now_ns_ - rail.since_ns >= kStableLifePauses * first_pause_ns_) {
    rail.join.pause_ns = first_pause_ns_;
  }
  set_down(i);
  rail.channel->fence();
  if (const Status status = take_last_arrivals(i); status != Status::kOk) return status;
  rail.queue.clear();
  rail.controls.clear();
  rail.confirmed = 0;
  update_load(i);
  busy_ &= ~bit(i);
  if (up_count_ == 0) {
    if (const Status status = take_arrivals_of_joins(); status != Status::kOk) return status;
    return fail(make_error(Status::kRemote, why.code, "rail %s: %s%s", name_of(rail),
                           why.what.c_str(),
                           rails_.size() > 1 ? " (it was the last rail of the link)" : ""));
  }
  rail.down_because = std::move(why.what);
  drop_errands(i);
  send_notice(i);
  return rail.peer_fenced ? settle(i) : Status::kOk;
}

// Whatever ended the channel, a port without a carrier is the cause that a person can mend, and
// only the rank that has it can tell.
Error Link::with_carrier(LinkRail& rail, Error why) const {
  if (!rail.lacks_carrier()) return why;
  return make_error(
      why.status, why.code,
      "%s has no carrier; check its cable, its switch port and `ip link` (noticed by: "
      "%s)",
      name_of(rail), why.what.c_str());
}

// What the peer was told has arrived counts as arrived here too: it will not send it again.
Status Link::take_last_arrivals(size_t i) {
  std::array<Done, 64> done;
  for (;;) {
    size_t count = 0;
    const Status polled = rails_[i].channel->poll(done, &count);
    for (size_t k = 0; k < count; ++k) {
      if (const Status status = handle(i, done[k]); status != Status::kOk) return status;
    }
    if (count == 0 || polled != Status::kOk) return Status::kOk;
  }
}

// The peer may have used a rail that is not up at this end yet, and may have closed it since. What
// that rail confirmed to the peer is taken here, before the link fails.
Status Link::take_arrivals_of_joins() {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i].state != RailState::kJoining || !rails_[i].join.connected) continue;
    rails_[i].channel->fence();
    if (const Status status = take_last_arrivals(i); status != Status::kOk) return status;
  }
  return Status::kOk;
}

void Link::send_notice(size_t i) {
  LinkRail& rail = rails_[i];
  const RailLife life = life_of(i);
  Work work;
  const size_t bearer = pick(0);
  user_.fence_record(life, bearer, &work);
  const uint64_t cookie = submit_control(bearer, ControlOp::kFenced, life.pack(), work);
  rail.notice = {true, bearer, cookie};
}

Errand Link::send_errand(ControlOp op, const RailLife& life) {
  const size_t bearer = pick(0);
  return {true, bearer, submit_control(bearer, op, life.pack(), Work())};
}

void Link::finish_errand(size_t bearer, uint64_t cookie) {
  for (LinkRail& rail : rails_) {
    RailJoin& join = rail.join;
    for (Errand* errand : {&rail.notice, &join.request, &join.joined, &join.retry}) {
      if (errand->bearer == bearer && errand->cookie == cookie) errand->under_way = false;
    }
  }
}

// What travelled on the rail that just died may be lost. Notices are sent again, and so is the word
// that a channel is connected, which is harmless if they were not lost. A request to join is
// answered by the time-out of its try, and a hint to try by the end of the pause.
void Link::drop_errands(size_t dead_rail) {
  for (size_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    RailJoin& join = rail.join;
    if (join.request.bearer == dead_rail) join.request.under_way = false;
    if (join.retry.bearer == dead_rail) join.retry.under_way = false;
    if (join.joined.under_way && join.joined.bearer == dead_rail) {
      join.joined = {};
      const bool still_due = rail.up() || rail.state == RailState::kJoining;
      if (still_due) join.joined = send_errand(ControlOp::kJoined, life_of(i));
    }
    if (i != dead_rail && rail.notice.under_way && rail.notice.bearer == dead_rail) send_notice(i);
  }
}

// Without a rail there is nobody to answer, and the link is about to fail.
Status Link::on_rail_word(ControlOp op, const RailLife& life) {
  if (up_count_ == 0) return Status::kOk;
  switch (op) {
    case ControlOp::kFenced:
      return on_peer_fenced(life);
    case ControlOp::kJoin:
      return on_join(life);
    case ControlOp::kJoined:
      on_joined(life);
      return Status::kOk;
    default:
      on_retry(life.rail);
      return Status::kOk;
  }
}

Status Link::on_peer_fenced(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  if (life.epoch != rail.epoch) return on_skipped(life);
  if (rail.peer_fenced) return Status::kOk;  // repeated
  rail.peer_fenced = true;
  switch (rail.state) {
    case RailState::kUp:
      return fail_rail(life.rail,
                       make_error(Status::kRemote, 0, "the peer reports that its end failed"));
    case RailState::kJoining:
      return give_join_up(life.rail, "the peer gave up");
    case RailState::kFenced:
      return settle(life.rail);
    case RailState::kDown:
      break;
  }
  return Status::kOk;
}

// Only now the rail is worth a warning: a peer that has closed its comm ends all rails, one after
// the other, and says nothing.
Status Link::settle(size_t i) {
  LinkRail& rail = rails_[i];
  if (rail.state != RailState::kFenced) return Status::kOk;
  if (!rail.down_because.empty()) {
    SLIME_WARN("peer %s, device %s: rail %s is down, %zu of %zu rails carry on: %s", peer_.c_str(),
               device_.properties().name.c_str(), name_of(rail), up_count_, rails_.size(),
               rail.down_because.c_str());
    rail.down_because.clear();
  }
  rail.state = RailState::kDown;
  plan_try(rail);
  return user_.on_fenced(life_of(i));
}

// A rail on which nothing completes while others carry traffic is dead too, though nobody was told.
// What others report counts only from half of the time on: what was reported earlier may have been
// sent before the trouble. Where they have nothing to report, a probe asks the peer: its completion
// is the answer, or a work of the peer's engine where the completion comes from the peer's NIC. A
// peer that is merely stopped answers on no rail. The suspect is probed as well, so that its path
// owes an answer; if its NIC gets answers, a work merely takes long.
Status Link::watch_silence(size_t i) {
  LinkRail& rail = rails_[i];
  const uint64_t half = silence_ns_ / 2;
  const uint64_t silent_ns = attended_ns_ - rail.busy_since_ns;
  if (silent_ns < half) return Status::kOk;
  bool others_live = false;
  for (size_t k = 0; k < rails_.size(); ++k) {
    const LinkRail& other = rails_[k];
    if (!other.up()) continue;
    const bool lives = k != i && other.heard_ns > rail.busy_since_ns + half;
    others_live |= lives;
    const bool asked = other.asked_ns != 0 && attended_ns_ - other.asked_ns < silence_ns_;
    if (!lives && !other.probing && !asked && other.queue.room() > 0) {
      probe(k, other.confirmed_by_nic ? Probe::kAsk : Probe::kPlain);
    }
  }
  if (!others_live || silent_ns < silence_ns_) return Status::kOk;
  if (attended_ns_ - rail.judged_ns < silence_ns_ / 16) return Status::kOk;
  rail.judged_ns = attended_ns_;
  if (!rail.channel->silent_for(half)) return Status::kOk;
  return fail_rail(i, make_error(Status::kTimeout, 0,
                                 "nothing completed for %.1f s while other rails carried on; check "
                                 "this path (cable, switch port, routing, firewall)",
                                 static_cast<double>(silent_ns) * 1e-9));
}

void Link::begin_unproven(size_t i) {
  unproven_ |= bit(i);
  rails_[i].unproven_ns = attended_ns_;
}

bool Link::has_delivered(size_t i) {
  LinkRail& rail = rails_[i];
  if (!rail.up()) return false;
  const bool proven = !(unproven_ & bit(i)) && !rail.probing;
  if (proven || !rail.channel->silent_for(0)) return true;
  if (!rail.probing && rail.queue.room() > 0) probe(i, Probe::kPlain);
  return false;
}

// Of unconfirmed works nobody would notice that their rail has died silently. So a probe, which is
// confirmed, follows them.
void Link::prove_rails() {
  for (uint32_t left = unproven_; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    if (attended_ns_ - rails_[i].unproven_ns < silence_ns_ / 4) continue;
    if (!rails_[i].probing && rails_[i].queue.room() > 0) probe(i, Probe::kPlain);
  }
}

// A rail whose own port has lost its carrier is left at once, if another has one.
Status Link::watch_carriers() {
  carriers_due_ns_ = now_ns_ + kCarrierIntervalNs;
  size_t usable = 0;
  for (size_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    const bool before = std::exchange(rail.lost_carrier, rail.lacks_carrier());
    usable += rail.up() && !rail.lost_carrier;
    if (!rail.up() && before && !rail.lost_carrier) carrier_returned(i);
  }
  for (size_t i = 0; usable > 0 && i < rails_.size(); ++i) {
    if (!rails_[i].up() || !rails_[i].lost_carrier) continue;
    const Error why = make_error(Status::kRemote, 0, "its port lost the carrier");
    if (const Status status = fail_rail(i, why); status != Status::kOk) return status;
  }
  const bool all_lost = usable == 0 && up_count_ > 0;
  if (all_lost && !warned_of_carrier_) {
    SLIME_WARN(
        "peer %s, device %s: no rail has a carrier; works wait for %.0f s for one "
        "(NCCL_SLIME_PEER_TIMEOUT); check cables, switch ports and `ip link`",
        peer_.c_str(), device_.properties().name.c_str(), settings().peer_timeout);
  }
  warned_of_carrier_ = all_lost;
  return Status::kOk;
}

}  // namespace slime
