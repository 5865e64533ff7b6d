// What a Link does when a rail dies. The order of the steps is what keeps it safe: see link.h.
#include <slime/log.h>

#include <algorithm>
#include <array>

#include "engine/link.h"

namespace slime {
namespace {

constexpr uint64_t kCarrierIntervalNs = 100'000'000;
constexpr uint64_t kStableLifePauses = 10;  // a life as long as this forgets earlier failures

}  // namespace

Status Link::fail_rail(size_t i, Error why) {
  LinkRail& rail = rails_[i];
  why = with_carrier(rail, std::move(why));
  if (now_ns_ - rail.since_ns >= kStableLifePauses * first_pause_ns_) {
    rail.join.pause_ns = first_pause_ns_;
  }
  rail.state = RailState::kFenced;
  rail.since_ns = now_ns_;
  --up_count_;
  rail.channel->fence();
  if (const Status status = take_last_arrivals(i); status != Status::kOk) return status;
  rail.queue.clear();
  rail.controls.open = 0;
  if (up_count_ == 0) {
    return fail(make_error(Status::kRemote, why.code, "rail %s: %s%s", name_of(rail),
                           why.what.c_str(),
                           rails_.size() > 1 ? " (it was the last rail of the link)" : ""));
  }
  SLIME_WARN("peer %s, device %s: rail %s is down, %zu of %zu rails carry on: %s", peer_.c_str(),
             device_.properties().name.c_str(), name_of(rail), up_count_, rails_.size(),
             why.what.c_str());
  drop_errands(i);
  send_notice(i);
  return rail.peer_fenced ? settle(i) : Status::kOk;
}

// Whatever ended the channel, a port without a carrier is the cause that a person can mend, and
// only the rank that has it can tell.
Error Link::with_carrier(const LinkRail& rail, Error why) const {
  if (rail.rail->carrier() != Carrier::kDown) return why;
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

void Link::send_notice(size_t i) {
  LinkRail& rail = rails_[i];
  const RailLife life{static_cast<uint32_t>(i), rail.epoch};
  Work work;
  const size_t carrier = pick(0);
  user_.fence_record(life, carrier, &work);
  const uint64_t cookie = submit_control(carrier, ControlOp::kFenced, life.pack(), work);
  rail.notice = {true, carrier, cookie};
}

void Link::finish_errand(size_t carrier, uint64_t cookie) {
  for (LinkRail& rail : rails_) {
    for (Errand* errand : {&rail.notice, &rail.join.request}) {
      if (errand->carrier == carrier && errand->cookie == cookie) errand->under_way = false;
    }
  }
}

// What travelled on the rail that just died may be lost. A notice is sent again, which is harmless
// if it was not; a request to join is answered by the time-out of its try.
void Link::drop_errands(size_t dead_rail) {
  for (size_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    if (rail.join.request.carrier == dead_rail) rail.join.request.under_way = false;
    if (i != dead_rail && rail.notice.under_way && rail.notice.carrier == dead_rail) send_notice(i);
  }
}

Status Link::on_rail_word(ControlOp op, const RailLife& life) {
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

Status Link::settle(size_t i) {
  LinkRail& rail = rails_[i];
  if (rail.state != RailState::kFenced) return Status::kOk;
  rail.state = RailState::kDown;
  plan_try(rail);
  return user_.on_fenced({static_cast<uint32_t>(i), rail.epoch});
}

// A rail on which nothing completes while others carry traffic is dead too, though nobody was told.
// What others report counts only from half of the time on: what was reported earlier may have been
// sent before the trouble. Where they have nothing to report, a probe asks the peer. The suspect is
// probed as well, so that its path owes an answer; if its NIC gets answers, a work merely takes
// long.
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
    if (!lives && !other.probing && other.queue.room() > 0) probe(k);
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

// A rail whose own port has lost its carrier is left at once, if another has one.
Status Link::watch_carriers() {
  carriers_due_ns_ = now_ns_ + kCarrierIntervalNs;
  size_t usable = 0;
  for (size_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    const Carrier before = std::exchange(rail.carrier, rail.rail->carrier());
    const bool lost = rail.carrier == Carrier::kDown;
    usable += rail.up() && !lost;
    if (!rail.up() && before == Carrier::kDown && !lost) carrier_returned(i);
  }
  for (size_t i = 0; usable > 0 && i < rails_.size(); ++i) {
    if (!rails_[i].up() || rails_[i].carrier != Carrier::kDown) continue;
    const Error why = make_error(Status::kRemote, 0, "its port");
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
