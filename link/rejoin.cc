#include "link/rejoin.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {

// The least time between two tries, whatever the peer and the ports do.
uint64_t Rejoin::least_pause_ns() const {
  return std::min(rails_.context().rail_retry_ns, times::kLeastRejoinPause);
}

bool Rejoin::may_try(const LinkRail& rail) {
  if (!path_.usable() || rail.life.state() != RailState::kDown || rail.notice.under_way ||
      rail.join.messages[RailJoin::kRequest].under_way) {
    return false;
  }
  return std::ranges::none_of(
      rails_.all(), [](const LinkRail& other) { return other.life.state() == RailState::kFenced; });
}

// For each rail: first messages that were lost, then the try under way, then a try that is due.
Status Rejoin::progress() {
  const uint64_t now_ns = rails_.clock().now_ns;
  if (path_.usable()) failover_.repeat_lost_notices();
  for (size_t i = 0; i < rails_.count(); ++i) {
    LinkRail& rail = rails_[i];
    if (path_.usable()) repeat_lost_message(i);
    if (rail.carrier.take_return() && !rail.up()) may_work_again(i);
    warn_of_lasting(i);
    if (rail.life.state() == RailState::kDown && path_.usable() &&
        std::exchange(rail.is_sound, false)) {
      may_work_again(i);
    }
    if (rail.life.state() == RailState::kJoining) {
      if (const Status status = step(i); status != Status::kOk) return status;
      continue;
    }
    if (!may_try(rail)) continue;
    const bool due = rails_.context().active && rail.retry.due(now_ns);
    if (rail.join.skipped) {
      end_skipped(i);
    } else if (rail.join.asked) {
      if (now_ns - rail.join.tried_ns >= least_pause_ns()) grant(i);
    } else if (due && !rail.carrier.lacks()) {
      begin(i);
    }
  }
  return Status::kOk;
}

void Rejoin::send(ControlOp op, RailJoin::Message which, size_t i, const OutboxPiece& piece) {
  rails_[i].join.messages[which] = {true, false};
  const auto part = static_cast<uint32_t>(i * 4 + which);
  path_.send({op, rails_.life_of(i).pack(), this, part, WorkKind::kControl, piece});
}

// A message may be lost with the rail that carried it. kJoined is sent again, which is harmless if
// it was not lost, but only while it is true: the lost one may be that of an earlier try. kJoin and
// kRetry are not sent again: the time-out ends a try whose request was lost, and the end of the
// pause begins a try whose hint was lost.
void Rejoin::repeat_lost_message(size_t i) {
  LinkRail& rail = rails_[i];
  const bool joining = rail.life.state() == RailState::kJoining;
  const bool still_due = rail.up() || (joining && rail.join.connected);
  const bool lost = std::exchange(rail.join.messages[RailJoin::kJoined].lost, false);
  if (lost && still_due) send(ControlOp::kJoined, RailJoin::kJoined, i);
}

void Rejoin::begin(size_t i) {
  LinkRail& rail = rails_[i];
  rail.join.tried_ns = rails_.clock().now_ns;
  if (open_channel(i)) return send_request(i);
  rail.retry.plan(rails_.clock().now_ns);
}

// The new life begins even if its channel cannot be opened: the peer waits for an answer about it.
// In that case the answer is a notice that this end has fenced the new life.
void Rejoin::grant(size_t i) {
  LinkRail& rail = rails_[i];
  rail.join.asked = false;
  rail.join.tried_ns = rails_.clock().now_ns;
  if (!rail.carrier.lacks() && open_channel(i)) {
    rail.join.has_peer = true;
    (void)rail.channel->connect(rail.join.peer);  // begins to connect; step() sees the result
    return send_request(i);
  }
  rail.life.refuse_try();
  failover_.send_notice(i);
}

// Begins a life in the state kJoining. The channel of the last life goes, after its counters have
// been saved.
bool Rejoin::open_channel(size_t i) {
  LinkRail& rail = rails_[i];
  const LinkContext& context = rails_.context();
  auto channel = rail.rail->open_channel({.active = context.active,
                                          .confirm_delivery = true,
                                          .traffic_class = context.traffic_class,
                                          .first = !context.active,
                                          .depth = context.channel_depth,
                                          .poller = rail.poller,
                                          .tag = context.tag});
  if (!channel) {
    SLIME_INFO("peer %s, device %s: rail %s cannot be opened again yet: %s", context.peer.c_str(),
               context.device_name(), rail.name(), channel.error().what.c_str());
    return false;
  }
  const RailTotals ended = snapshot(rail.channel->counters);
  context.devices.fold(*rail.rail, ended);
  rail.past.add(ended);
  rail.channel = std::move(*channel);
  rail.life.begin_try();
  rail.join.has_peer = rail.join.connected = rail.join.peer_connected = false;
  const uint64_t connect_ns = seconds_to_ns(context.settings().connect_timeout);
  rail.join.deadline_ns = rails_.clock().now_ns + std::min(times::kRejoin, connect_ns);
  return true;
}

void Rejoin::send_request(size_t i) {
  LinkRail& rail = rails_[i];
  const RailLife life = rails_.life_of(i);
  const JoinRecord record{life.rail, life.epoch, rail.channel->address()};
  const size_t offset = rails_.memory().join_to_peer(i);
  std::memcpy(rails_.memory().outbox() + offset, &record, sizeof record);
  send(ControlOp::kJoin, RailJoin::kRequest, i, {offset, sizeof record});
}

// No rail is up and there is no lifeline: the link is about to fail, and nothing carries an answer.
Status Rejoin::on_message(ControlOp op, const RailLife& life) {
  if (path_.ended()) return Status::kOk;
  LinkRail& rail = rails_[life.rail];
  switch (op) {
    case ControlOp::kFenceNotice:
      return on_fence_notice(life);
    case ControlOp::kJoin:
      return on_join(life);
    case ControlOp::kJoined:
      rail.join.peer_connected |=
          rail.life.state() == RailState::kJoining && rail.life.epoch() == life.epoch;
      return Status::kOk;
    default:
      try_soon(life.rail);
      return Status::kOk;
  }
}

// The notice is about the present life of the rail, the try under way, or a try that has not begun
// at this end.
Status Rejoin::on_fence_notice(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  if (life.epoch != rail.life.epoch()) return on_skipped(life);
  if (!rail.life.note_peer_fenced()) return Status::kOk;  // repeated
  rail.is_sound |= life.is_sound && !rail.life.dead();
  if (rail.life.state() == RailState::kJoining) return give_up(life.rail, "the peer gave up");
  return failover_.on_peer_fenced(life.rail);
}

// At the passive end kJoin is a request, at the active end the answer to one. A request also means
// that the peer has fenced the life before, although its notice may still be on its way.
Status Rejoin::on_join(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  JoinRecord record;
  std::memcpy(&record, rails_.memory().join_from_peer(life.rail), sizeof record);
  if (record.rail != life.rail || record.epoch != life.epoch) return Status::kOk;  // a newer one
  if (rails_.context().active) {
    if (rail.life.state() != RailState::kJoining || rail.life.epoch() != life.epoch)
      return Status::kOk;
    rail.join.peer = record.address;
    rail.join.has_peer = true;
    return Status::kOk;
  }
  const bool new_life = life.epoch == RailLife::next(rail.life.epoch()) && !rail.join.skipped;
  if (!rail.life.dead() || !new_life) return Status::kOk;
  (void)rail.life.note_peer_fenced();
  rail.join.peer = record.address;
  rail.join.asked = true;
  return failover_.finish_fencing(life.rail);
}

// The active end has given up a try for which this end had not opened a channel yet. So its notice
// has the next epoch, not the present one.
Status Rejoin::on_skipped(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  const bool next = life.epoch == RailLife::next(rail.life.epoch());
  if (rails_.context().active || !rail.life.dead() || !next) return Status::kOk;
  (void)rail.life.note_peer_fenced();
  rail.join.asked = false;
  rail.join.skipped = true;
  return failover_.finish_fencing(life.rail);
}

// Ends the try that the peer gave up: the peer waits for a notice about it from this end too.
void Rejoin::end_skipped(size_t i) {
  LinkRail& rail = rails_[i];
  rail.join.skipped = false;
  rail.life.skip_try();
  failover_.send_notice(i);
}

// Nobody was warned of a rail that was sound. Now it is an outage.
void Rejoin::warn_of_lasting(size_t i) {
  LinkRail& rail = rails_[i];
  const bool known = !rail.outage.empty() || !rail.down_because.empty() || !rail.life.was_up();
  const uint64_t down_ns = rails_.clock().now_ns - rail.life.since_ns();
  if (rail.up() || known || down_ns < times::kLastingOutage || !failover_.begin_outage(i)) return;
  const LinkContext& context = rails_.context();
  SLIME_WARN("peer %s, device %s: rail %s has not returned for %.0f s, although it was sound",
             context.peer.c_str(), context.device_name(), rail.name(),
             static_cast<double>(down_ns) * 1e-9);
}

// Only the active end begins tries. The next one is due at once, or when the least pause is over.
void Rejoin::try_soon(size_t i) {
  LinkRail& rail = rails_[i];
  if (rail.up() || !rails_.context().active) return;
  rail.retry.plan_soon(std::max(rails_.clock().now_ns, rail.join.tried_ns + least_pause_ns()));
}

// The passive end cannot begin a try, so it tells the active end that one may succeed.
void Rejoin::may_work_again(size_t i) {
  if (rails_.context().active) return try_soon(i);
  const bool under_way = rails_[i].join.messages[RailJoin::kRetry].under_way;
  if (!under_way) send(ControlOp::kRetry, RailJoin::kRetry, i);
}

void Rejoin::hurry() {
  for (size_t i = 0; i < rails_.count(); ++i) try_soon(i);
}

// Continues a try: connects this end, reports it, and brings the rail up when both ends are
// connected. The deadline ends the try.
Status Rejoin::step(size_t i) {
  LinkRail& rail = rails_[i];
  RailJoin& join = rail.join;
  if (!join.connected && join.has_peer) {
    const Status status = rail.channel->connect(join.peer);
    if (status != Status::kOk && status != Status::kAgain) {
      return give_up(i, rail.channel->failure().what);
    }
    join.connected = status == Status::kOk;
    if (join.connected) send(ControlOp::kJoined, RailJoin::kJoined, i);
  }
  if (join.connected && join.peer_connected) {
    bring_up(i);
    return Status::kOk;
  }
  if (join.connected) {
    const Status status = look_for_first_work(i);
    const bool joins = rail.life.state() == RailState::kJoining;  // it may have come up, and failed
    if (status != Status::kOk || !joins) return status;
  }
  if (rails_.clock().now_ns < join.deadline_ns) return Status::kOk;
  return give_up(i, join.has_peer ? "the new channel did not connect in time"
                                  : "the peer did not answer in time");
}

// The peer's probe over the new channel may come long before its kJoined, which waits behind the
// bytes of the rail that carries it.
Status Rejoin::look_for_first_work(size_t i) {
  std::array<Done, 8> done;
  size_t count = 0;
  const Status polled = rails_[i].channel->poll(done, &count);
  if (count == 0) {
    return polled == Status::kOk ? polled : give_up(i, rails_[i].channel->failure().what);
  }
  bring_up(i);
  return failover_.take(i, std::span(done).first(count));
}

Status Rejoin::give_up(size_t i, const std::string& why) {
  LinkRail& rail = rails_[i];
  const LinkContext& context = rails_.context();
  SLIME_INFO("peer %s, device %s: rail %s does not return yet: %s", context.peer.c_str(),
             context.device_name(), rail.name(), why.c_str());
  rail.life.give_up();
  if (const Status status = failover_.fence(i); status != Status::kOk) return status;
  failover_.send_notice(i);
  return rail.life.peer_fenced() ? failover_.finish_fencing(i) : Status::kOk;
}

// The probe shows at once whether the new channel works.
void Rejoin::bring_up(size_t i) {
  LinkRail& rail = rails_[i];
  const LinkContext& context = rails_.context();
  // The last link that has it back warns; of links that started without it, the first. Nobody was
  // warned of a rail that was sound.
  const bool again = rail.life.was_up();
  bool warns = false;
  if (!rail.outage.empty()) {
    warns = context.devices.outages().end(std::exchange(rail.outage, {}));
  } else if (!again) {
    warns = context.devices.first_time("joins: " + context.peer + " " + rail.name());
  }
  log::write(warns ? log::Level::kWarn : log::Level::kInfo, __FILE__, __LINE__,
             "peer %s, device %s: rail %s %s after %.1f s", context.peer.c_str(),
             context.device_name(), rail.name(), again ? "carries traffic again" : "joins the link",
             static_cast<double>(rails_.clock().now_ns - rail.life.since_ns()) * 1e-9);
  rails_.set_up(i);
  path_.leave_lifeline();
  ++rejoins_;
  liveness_.probe(i, RailLiveness::Probe::kPlain);
}

}  // namespace slime
