#include "link/link.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace slime {
Link::Link(Devices& devices, Device& device, LinkParts parts)
    : context_(devices, device, std::move(parts.peer), parts.active, parts.traffic_class,
               parts.channel_depth, tag_of(parts.id, parts.active)),
      memory_(std::move(parts.inbox), std::move(parts.outbox), parts.owner_bytes, parts.peer_inbox),
      rails_(context_, memory_),
      liveness_(rails_),
      scheduler_(rails_, liveness_),
      peer_watch_(rails_, liveness_),
      lifeline_(context_, memory_, std::move(parts.lifeline_dialer),
                context_.rail_retry_ns > 0 ? seconds_to_ns(parts.lifeline_seconds) : 0),
      path_(rails_, lifeline_),
      failover_(rails_, path_, *this),
      rejoin_(rails_, path_, failover_, liveness_),
      last_activity_ns_(rails_.clock().now_ns) {
  for (LinkChannel& channel : parts.channels) add_rail(std::move(channel));
  warm_up();
}

void Link::add_rail(LinkChannel channel) {
  scheduler_.limit_work(
      context_.device.rails()[channel.device_rail_index]->caps().max_message_bytes);
  rails_.add(std::move(channel));
}

// The probes warm the rails up: some fabrics open a connection at its first work (EFA: tens of
// milliseconds). Links of one device prefer different rails, so that they spread over all.
void Link::warm_up() {
  size_t preferred = context_.device.number_link() % rails_.count();
  while (!rails_[preferred].up()) preferred = (preferred + 1) % rails_.count();
  rails_.prefer(preferred);
  for (size_t i = 0; i < rails_.count(); ++i) {
    if (rails_[i].up()) liveness_.probe(i, RailLiveness::Probe::kPlain);
  }
}

// The rails with works of this end, those with recent arrivals, and one of the others by turns. So
// a rail that is not in use costs little, and its first arrival is seen a few calls later.
uint32_t Link::rails_to_look_at() {
  if (++next_cold_ >= rails_.count()) next_cold_ = 0;
  return rails_.busy() | hot_ | uint32_t{1} << next_cold_;
}

// One turn of the link: rails first, then the checks that are due, then rails that may return.
Status Link::progress() {
  if (status() != Status::kOk) return status();
  rails_.read_clock();
  for (uint32_t left = rails_to_look_at(); left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    if (!rails_[i].up()) continue;
    if (const Status status = progress_rail(i); status != Status::kOk) return status;
  }
  if (liveness_.carriers_due()) {
    if (const Status status = watch_rails(); status != Status::kOk) return status;
  }
  if (rails_.up_count() > 1 && scheduler_.overdue_due()) scheduler_.check_overdue();
  if (!lifeline_.idle()) {
    if (const Status status = progress_lifeline(); status != Status::kOk) return status;
  }
  return rails_.up_count() < rails_.count() ? rejoin_.progress() : Status::kOk;
}

Status Link::fence_rail(size_t i, const char* why) {
  SLIME_CHECK(rails_[i].up() && may_lose_rail());
  rails_[i].is_sound = true;
  return failover_.fail_rail(i, make_error(Status::kCancelled, 0, "%s", why));
}

// What comes beside the rails is about them only.
Status Link::progress_lifeline() {
  while (const auto immediate = lifeline_.next(rails_.clock().polled_ns)) {
    const ControlOp op = control_op(*immediate);
    if (is_of_user(op) || op == ControlOp::kProbe || op == ControlOp::kAnswer) {
      return context_.fail_protocol("a control work over the lifeline that is not about a rail");
    }
    if (const Status status = take_control(kNoRail, *immediate); status != Status::kOk)
      return status;
  }
  if (status() != Status::kOk) return status();
  const bool was_open = lifeline_.open();
  if (const Status status = lifeline_.progress(rails_.clock().polled_ns); status != Status::kOk)
    return status;
  if (!was_open && lifeline_.open()) rejoin_.hurry();
  return status();
}

bool Link::has_unproven_rail() const {
  for (size_t i = 0; i < rails_.count(); ++i) {
    if (rails_[i].up() && rails_[i].signs.unproven()) return true;
  }
  return false;
}

// What waits for credits or company leaves when works in flight are done.
bool Link::arm() {
  if (status() != Status::kOk) return false;
  for (size_t i = 0; i < rails_.count(); ++i) {
    LinkRail& rail = rails_[i];
    if (!rail.up()) continue;
    if (rail.queue.queued() > 0 && rail.queue.in_flight() == 0) return false;
    if (rail.poller == nullptr || rail.channel->arm() != Status::kOk) return false;
  }
  return true;
}

void Link::disarm() {
  for (LinkRail& rail : rails_.all()) {
    if (rail.up() && rail.poller != nullptr) rail.channel->disarm();
  }
}

uint64_t Link::traffic() const {
  uint64_t count = 0;
  for (size_t i = 0; i < rails_.count(); ++i) {
    const RailCounters& counters = rails_[i].channel->counters;
    count += counters.doorbells.get() + counters.arrivals.get();
  }
  return count;
}

// Posts before it polls: works that a rail takes at once (tcp) are then reported by the same call.
Status Link::progress_rail(size_t i) {
  LinkRail& rail = rails_[i];
  rails_.flush(i, true);
  if (rail.signs.becomes_quiet()) hot_ &= ~(uint32_t{1} << i);
  if (const Status status = poll_rail(i); status != Status::kOk) return status;
  if (!rail.up() || rail.signs.confirmed() == 0) return Status::kOk;
  if (rails_.up_count() <= 1 && !lifeline_.enabled()) return Status::kOk;
  auto silence = liveness_.judge_silence(i, lifeline_.enabled());
  return silence ? failover_.fail_rail(i, std::move(*silence)) : Status::kOk;
}

Status Link::poll_rail(size_t i) {
  LinkRail& rail = rails_[i];
  size_t count = done_.size();
  // A few rounds at most, so that other links of the thread get their turn.
  for (int round = 0; round < 4 && count == done_.size() && rail.up(); ++round) {
    count = 0;
    const Status polled = rail.channel->poll(done_, &count);
    for (size_t k = 0; k < count; ++k) {
      if (const Status status = handle_completion(i, done_[k]); status != Status::kOk)
        return status;
    }
    if (polled != Status::kOk && rail.up()) return failover_.fail_rail(i, rail.channel->failure());
  }
  if (rail.up() && rail.rate.has_news()) scheduler_.observe(i);
  return Status::kOk;
}

// Runs ten times a second. A rail whose own port has lost its carrier fails at once, if another
// rail has one.
Status Link::watch_rails() {
  if (liveness_.look_at_carriers()) {
    for (size_t i = 0; i < rails_.count(); ++i) {
      if (!rails_[i].up() || !rails_[i].carrier.lost()) continue;
      Error why = make_error(Status::kRemote, 0, "its port lost the carrier");
      const Status status = failover_.fail_rail(i, std::move(why));
      if (status != Status::kOk) return status;
    }
  }
  if (rails_.up_count() > 1) {
    scheduler_.probe_unused_rails(rails_.clock().now_ns - last_activity_ns_);
  }
  if (rails_.up_count() > 1 || lifeline_.enabled()) {
    liveness_.prove_rails(lifeline_.enabled() && context_.active);
  }
  return Status::kOk;
}

void Link::post_more() {
  for (uint32_t left = rails_.busy(); left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    rails_.flush(i, true);
    if (rails_.count() > 1) {
      rails_[i].rate.go_on(rails_.clock().polled_ns, rails_.loads()[i].outstanding);
    }
  }
}

// An arrival shows that the peer's process works, and keeps its rail among those polled each time.
Status Link::handle_completion(size_t i, const Done& done) {
  if (done.kind == Done::Kind::kSent) {
    take_sent(i, done);
    return Status::kOk;
  }
  if (done.kind == Done::Kind::kRefused) return take_refused(i, done);
  rails_[i].signs.arrived(rails_.clock().polled_ns);
  hot_ |= uint32_t{1} << i;
  if (is_control(done.immediate)) return take_control(i, done.immediate);
  last_activity_ns_ = rails_.clock().now_ns;
  return context_.user().on_arrived(i, done.immediate, done.bytes);
}

// The rail is updated first, because the owner may submit further works.
void Link::take_sent(size_t i, const Done& done) {
  LinkRail& rail = rails_[i];
  const OpenWork* const work = rail.works.end(done.cookie);
  if (work == nullptr) return;
  // A probe shows that a rail works, not that a request makes progress. An unconfirmed work shows
  // neither.
  if (work->confirmed && work->kind != WorkKind::kProbe) last_activity_ns_ = rails_.clock().now_ns;
  if (rail.up()) rails_.completed(i, rail, *work);
  if (work->owner != nullptr) work->owner->on_done(work->part);
}

// A refusal shows that the peer lives, and nothing of the rail's rate. Where the work's owner did
// not expect it, no other rail would carry the work out, so the link fails.
Status Link::take_refused(size_t i, const Done& done) {
  LinkRail& rail = rails_[i];
  const OpenWork* const work = rail.works.end(done.cookie);
  if (work == nullptr) return Status::kOk;
  const uint32_t bytes = work->length;
  last_activity_ns_ = rails_.clock().now_ns;
  if (rail.up()) {
    rails_.completed(i, rail, *work);
    rail.rate.cancel();
    rail.is_sound = !rail.rail->caps().goes_on_after_refusal;
  }
  if (work->owner != nullptr && work->owner->on_refused(work->part)) return Status::kOk;
  return context_.fail(make_error(
      Status::kRemote, 0,
      "rail %s: the peer refused a write of %u bytes: it has not registered that memory, or "
      "not any more; do not free or deregister a buffer before the request that uses it is done",
      rails_[i].name(), bytes));
}

Status Link::take_control(size_t i, uint32_t immediate) {
  const uint32_t value = control_value(immediate);
  const RailLife life = RailLife::unpack(value);
  const ControlOp op = control_op(immediate);
  // Nor is it progress of a request that the only rails die and come back.
  if (i != kNoRail && op != ControlOp::kProbe && op != ControlOp::kAnswer) {
    last_activity_ns_ = rails_.clock().now_ns;
  }
  switch (op) {
    case ControlOp::kProbe:
      if (value != 0) liveness_.answer(i);
      return Status::kOk;
    case ControlOp::kAnswer:
      rails_[i].signs.answered();
      return Status::kOk;
    case ControlOp::kFenceNotice:
    case ControlOp::kJoin:
    case ControlOp::kJoined:
    case ControlOp::kRetry:
      if (life.rail < rails_.count()) return rejoin_.on_message(op, life);
      return context_.fail_protocol("a control message names a rail that this link does not have");
  }
  return context_.user().on_arrived(i, immediate, 0);
}

// The time-out counts from the start of the request or the last activity of the link, whichever is
// later: a request may wait behind others that make progress.
Status Link::check_deadline(uint64_t started_ns, const char* waits_for, uint64_t bytes) {
  const uint64_t since = std::max(started_ns, last_activity_ns_), now_ns = rails_.clock().now_ns;
  const double limit = context_.settings().request_timeout;
  if (now_ns <= since) return Status::kOk;
  if (now_ns - since >= peer_watch_.patience_ns()) {
    if (auto dead = peer_watch_.look()) return context_.fail(std::move(*dead));
  }
  if (now_ns - since < seconds_to_ns(limit)) return Status::kOk;
  return context_.fail(
      make_error(Status::kTimeout, 0,
                 "waited %.0f s for %s (%llu bytes) and nothing arrived; see whether that "
                 "process is stopped or stuck, or raise NCCL_SLIME_REQUEST_TIMEOUT%s",
                 limit, waits_for, static_cast<unsigned long long>(bytes),
                 failover_.unanswered_deaths().c_str()));
}

}  // namespace slime
