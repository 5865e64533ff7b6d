// How a dead rail returns to its link, over a new channel and with a new epoch.
//
//   active end                                passive end
//     opens a channel
//     kJoin, its address            -->         opens a channel, and connects it
//                                   <--   kJoin, its address
//     connects its channel
//     kJoined                      <-->   kJoined
//     each end: connected, and the peer is too: the rail is up
//
// All this travels over the rails that live. A try that fails ends like a life of the rail: each
// end fences its channel and says so (kFenced), and when both have, another try may begin. So an
// end that gave up and one that thinks that the rail is up cannot both be right for long, without
// any agreement about clocks.
//
// A try begins, and is granted, only while no rail is kFenced and no record of ours for this rail
// is under way: then nothing that was sent for an earlier life can overwrite a newer record.

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "engine/link/link.h"
#include "engine/link/records.h"

namespace slime {
namespace {

constexpr uint64_t kMaxPauses = 60;  // the longest pause, in first pauses
constexpr uint64_t kLeastPauseNs = 1'000'000'000;
constexpr uint64_t kJoinTimeoutNs = 5'000'000'000;

}  // namespace

// Whatever the peer and the ports do, a rail does not return more often than that.
uint64_t Link::least_pause_ns() const { return std::min(first_pause_ns_, kLeastPauseNs); }

void Link::plan_try(LinkRail& rail) {
  rail.join.next_try_ns = now_ns_ + rail.join.pause_ns;
  const uint64_t next = std::max(first_pause_ns_, 2 * rail.join.pause_ns);
  rail.join.pause_ns = std::min(next, kMaxPauses * first_pause_ns_);
}

bool Link::may_try(const LinkRail& rail) const {
  if (rail.state != RailState::kDown || rail.notice.under_way || rail.join.request.under_way) {
    return false;
  }
  return std::none_of(rails_.begin(), rails_.end(),
                      [](const LinkRail& other) { return other.state == RailState::kFenced; });
}

Status Link::progress_dead_rails() {
  for (size_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    if (rail.state == RailState::kJoining) {
      if (const Status status = step_join(i); status != Status::kOk) return status;
      continue;
    }
    if (!may_try(rail)) continue;
    const bool due = active_ && first_pause_ns_ > 0 && now_ns_ >= rail.join.next_try_ns;
    if (rail.join.skipped) {
      end_skipped(i);
    } else if (rail.join.asked) {
      if (now_ns_ - rail.join.tried_ns >= least_pause_ns()) grant_join(i);
    } else if (due && !rail.lacks_carrier()) {
      begin_join(i);
    }
  }
  return Status::kOk;
}

void Link::begin_join(size_t i) {
  rails_[i].join.tried_ns = now_ns_;
  if (open_again(i)) {
    send_join(i);
  } else {
    plan_try(rails_[i]);
  }
}

// The new life begins, whether its channel can be opened or not: the peer waits for a word about
// it.
void Link::grant_join(size_t i) {
  LinkRail& rail = rails_[i];
  rail.join.asked = false;
  rail.join.tried_ns = now_ns_;
  if (!rail.lacks_carrier() && open_again(i)) {
    rail.join.has_peer = true;
    (void)rail.channel->connect(rail.join.peer);  // first; step_join() looks how it went
    return send_join(i);
  }
  rail.epoch = RailLife::next(rail.epoch);
  rail.peer_fenced = false;
  rail.state = RailState::kFenced;
  send_notice(i);
}

bool Link::open_again(size_t i) {
  LinkRail& rail = rails_[i];
  auto channel = rail.rail->open_channel({active_, true, traffic_class_, !active_});
  if (!channel) {
    SLIME_INFO("peer %s, device %s: rail %s cannot be opened again yet: %s", peer_.c_str(),
               device_.properties().name.c_str(), name_of(rail), channel.error().what.c_str());
    return false;
  }
  fabric_.fold(*rail.rail, snapshot(rail.channel->counters));
  rail.channel = std::move(*channel);
  rail.state = RailState::kJoining;
  rail.epoch = RailLife::next(rail.epoch);
  rail.peer_fenced = false;
  rail.join.has_peer = rail.join.connected = rail.join.peer_connected = false;
  const uint64_t connect_ns = seconds_to_ns(settings().connect_timeout);
  rail.join.deadline_ns = now_ns_ + std::min(kJoinTimeoutNs, connect_ns);
  return true;
}

void Link::send_join(size_t i) {
  LinkRail& rail = rails_[i];
  const RailLife life = life_of(i);
  const JoinRecord record{life.rail, life.epoch, rail.channel->address()};
  const JoinRecordPlaces place = user_.join_records(i);
  std::memcpy(place.outbox->at(place.offset), &record, sizeof record);
  const size_t bearer = pick(sizeof record);
  const Work work = write_of(*place.outbox, place.offset, sizeof record, bearer);
  rail.join.request = {true, bearer, submit_control(bearer, ControlOp::kJoin, life.pack(), work)};
}

// At the passive end a request, at the active end the answer to one. A request means that the peer
// has fenced the life before, though its notice may still be on its way.
Status Link::on_join(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  JoinRecord record;
  std::memcpy(&record, user_.join_records(life.rail).from_peer, sizeof record);
  if (record.rail != life.rail || record.epoch != life.epoch) return Status::kOk;  // overtaken
  if (active_) {
    if (rail.state != RailState::kJoining || rail.epoch != life.epoch) return Status::kOk;
    rail.join.peer = record.address;
    rail.join.has_peer = true;
    return Status::kOk;
  }
  const bool dead = rail.state == RailState::kFenced || rail.state == RailState::kDown;
  const bool new_life = life.epoch == RailLife::next(rail.epoch) && !rail.join.skipped;
  if (!dead || !new_life) return Status::kOk;
  rail.peer_fenced = true;
  rail.join.peer = record.address;
  rail.join.asked = true;
  return settle(life.rail);
}

// The peer has fenced a life that this end has not begun: it gave a try up before its request was
// granted.
Status Link::on_skipped(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  const bool dead = rail.state == RailState::kFenced || rail.state == RailState::kDown;
  if (active_ || !dead || life.epoch != RailLife::next(rail.epoch)) return Status::kOk;
  rail.peer_fenced = true;
  rail.join.asked = false;
  rail.join.skipped = true;
  return settle(life.rail);
}

// The peer waits for the same word from here.
void Link::end_skipped(size_t i) {
  LinkRail& rail = rails_[i];
  rail.join.skipped = false;
  rail.epoch = RailLife::next(rail.epoch);
  send_notice(i);
}

void Link::on_joined(const RailLife& life) {
  LinkRail& rail = rails_[life.rail];
  if (rail.state == RailState::kJoining && rail.epoch == life.epoch) {
    rail.join.peer_connected = true;
  }
}

void Link::on_retry(uint32_t i) {
  LinkRail& rail = rails_[i];
  if (rail.up() || !active_) return;
  rail.join.pause_ns = 0;
  rail.join.next_try_ns = std::max(now_ns_, rail.join.tried_ns + least_pause_ns());
}

void Link::carrier_returned(size_t i) {
  if (active_) return on_retry(static_cast<uint32_t>(i));
  Errand& retry = rails_[i].join.retry;
  if (!retry.under_way) retry = send_errand(ControlOp::kRetry, life_of(i));
}

Status Link::step_join(size_t i) {
  LinkRail& rail = rails_[i];
  RailJoin& join = rail.join;
  if (!join.connected && join.has_peer) {
    const Status status = rail.channel->connect(join.peer);
    if (status != Status::kOk && status != Status::kAgain) {
      return give_join_up(i, rail.channel->failure().what);
    }
    join.connected = status == Status::kOk;
    if (join.connected) join.joined = send_errand(ControlOp::kJoined, life_of(i));
  }
  if (join.connected && join.peer_connected) {
    bring_up(i);
    return Status::kOk;
  }
  if (now_ns_ < join.deadline_ns) return Status::kOk;
  return give_join_up(i, join.has_peer ? "the new channel did not connect in time"
                                       : "the peer did not answer in time");
}

Status Link::give_join_up(size_t i, const std::string& why) {
  LinkRail& rail = rails_[i];
  SLIME_INFO("peer %s, device %s: rail %s does not return yet: %s", peer_.c_str(),
             device_.properties().name.c_str(), name_of(rail), why.c_str());
  rail.state = RailState::kFenced;
  rail.channel->fence();
  if (const Status status = take_last_arrivals(i); status != Status::kOk) return status;
  send_notice(i);
  return rail.peer_fenced ? settle(i) : Status::kOk;
}

void Link::bring_up(size_t i) {
  LinkRail& rail = rails_[i];
  SLIME_WARN("peer %s, device %s: rail %s carries traffic again after %.1f s", peer_.c_str(),
             device_.properties().name.c_str(), name_of(rail),
             static_cast<double>(now_ns_ - rail.since_ns) * 1e-9);
  set_up(i);
  ++rejoins_;
  probe(i, Probe::kPlain);
}

}  // namespace slime
