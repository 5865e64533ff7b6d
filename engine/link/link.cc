#include "engine/link/link.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/log.h"
#include "engine/link/records.h"

namespace slime {
namespace {

constexpr uint32_t kQuietPolls = 64;  // after so many without an arrival a rail is not hot any more
// Without a look at the rails for so long: what was timed meanwhile says nothing.
constexpr uint64_t kAwayNs = 20'000'000;

bool is_probe(const WorkId& cookie) {
  return cookie.kind == WorkId::Kind::kControl &&
         cookie.part == static_cast<uint8_t>(ControlOp::kProbe);
}

}  // namespace

Link::Link(Fabric& fabric, Device& device, std::string peer, bool active, LinkUser& user,
           int traffic_class)
    : fabric_(fabric),
      device_(device),
      peer_(std::move(peer)),
      active_(active),
      traffic_class_(traffic_class),
      user_(user),
      silence_ns_(seconds_to_ns(fabric.settings().rail_timeout)),
      first_pause_ns_(seconds_to_ns(fabric.settings().rail_retry)) {
  if (settings().min_stripe > 0) {
    stripe_limits_.least = static_cast<uint64_t>(settings().min_stripe);
  }
  now_ns_ = last_activity_ns_ = fabric.clock().now_ns();
}

Link::~Link() {
  for (LinkRail& rail : rails_) fabric_.fold(*rail.rail, snapshot(rail.channel->counters));
}

void Link::add_rail(LinkChannel channel) {
  Rail* rail = device_.rails()[channel.device_rail];
  const RailCaps& caps = rail->caps();
  PostPolicy policy;
  policy.max_batch = static_cast<uint32_t>(settings().max_batch);
  policy.watermark = static_cast<uint32_t>(settings().watermark);
  policy.flush_ns = static_cast<uint64_t>(settings().flush_us) * 1000;
  rails_.emplace_back(std::move(channel), rail, PostQueue::fit(policy, caps));
  loads_.add();
  rails_.back().join.pause_ns = first_pause_ns_;
  (void)rails_.back().lacks_carrier();  // remembers that it has one
  set_up(rails_.size() - 1);
  stripe_limits_.most = std::min(stripe_limits_.most, caps.max_message_bytes);
}

void Link::warm_up() {
  // Some fabrics set a connection up at its first work (EFA: tens of milliseconds).
  for (size_t i = 0; i < rails_.size(); ++i) probe(i, Probe::kPlain);
  // Links of the same rails shall not all prefer the first one.
  favourite_ = device_.number_link() % rails_.size();
}

Work Link::write_of(const Outbox& outbox, size_t offset, size_t bytes, size_t rail) const {
  Work work;
  work.local = outbox.at(offset);
  work.local_key = local_key(rail, outbox.buffer.region());
  work.remote_address = outbox.peer_inbox.address + offset;
  work.remote_offset = offset;
  work.remote_key = outbox.peer_inbox.keys[rail];
  work.length = static_cast<uint32_t>(bytes);
  return work;
}

void Link::probe(size_t i, Probe probe) {
  LinkRail& rail = rails_[i];
  rail.probing = true;
  if (probe == Probe::kAsk) rail.asked_ns = attended_ns_;
  unproven_ &= ~bit(i);
  Work work;
  if (probe == Probe::kWithBytes) user_.fill_probe(i, &work);
  (void)submit_control(i, ControlOp::kProbe, probe == Probe::kAsk, work);
}

// One answer at a time, however often the peer asks.
void Link::answer_probe(size_t i) {
  LinkRail& rail = rails_[i];
  if (!rail.up() || rail.answering || rail.queue.room() == 0) return;
  rail.answering = true;
  (void)submit_control(i, ControlOp::kAnswer, 0, Work());
}

void Link::set_up(size_t i) {
  LinkRail& rail = rails_[i];
  rail.state = RailState::kUp;
  rail.since_ns = now_ns_;
  rail.busy_since_ns = rail.heard_ns = attended_ns_;
  rail.probing = rail.answering = false;
  rail.asked_ns = 0;
  rail.rate = RailRate(rail.speed_mbps);
  update_load(i);
  if (++up_count_ == 1) favourite_ = i;
}

void Link::set_down(size_t i) {
  LinkRail& rail = rails_[i];
  rail.state = RailState::kFenced;
  rail.since_ns = now_ns_;
  update_load(i);
  hot_ &= ~bit(i);
  unproven_ &= ~bit(i);
  --up_count_;
  for (size_t k = 0; up_count_ == 1 && k < rails_.size(); ++k) {
    if (rails_[k].up()) favourite_ = k;
  }
}

// No place is free only where the peer confirms none.
uint64_t Link::submit_control(size_t i, ControlOp op, uint32_t value, Work work) {
  const auto place = rails_[i].controls.begin(work.length);
  if (!place) {
    (void)fail(make_error(Status::kRemote, 0, "rail %s: the peer confirms none of %u control works",
                          name_of(rails_[i]), kControlRoom));
    return 0;
  }
  work.immediate = control_immediate(op, value);
  work.unconfirmed = needs_no_confirmation(op);
  work.cookie =
      WorkId{WorkId::Kind::kControl, static_cast<uint8_t>(op), place->index, place->generation}
          .pack();
  submit(i, work);
  return work.cookie;
}

// Those with works of ours or with lately arrived ones of the peer, and one of the others: a rail
// that is not in use costs little, and what arrives there first is seen a few calls later.
uint32_t Link::rails_to_look_at() {
  if (++next_cold_ >= rails_.size()) next_cold_ = 0;
  return busy_ | hot_ | bit(next_cold_);
}

void Link::read_clock() {
  const uint64_t before_ns = now_ns_;
  now_ns_ = fabric_.clock().now_ns();
  const uint64_t away_ns = now_ns_ - before_ns;
  attended_ns_ += std::min(away_ns, silence_ns_ / 16);
  if (away_ns < kAwayNs) return;
  for (LinkRail& rail : rails_) rail.rate.cancel();
}

Status Link::progress() {
  if (failure_.status != Status::kOk) return failure_.status;
  read_clock();
  for (uint32_t left = rails_to_look_at(); left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    if (!rails_[i].up()) continue;
    if (const Status status = progress_rail(i); status != Status::kOk) return status;
  }
  if (now_ns_ >= carriers_due_ns_) {
    if (const Status status = watch_carriers(); status != Status::kOk) return status;
    if (up_count_ > 1) {
      judge_rails();
      prove_rails();
    }
  }
  if (up_count_ > 1 && now_ns_ >= overdue_due_ns_) check_overdue();
  return up_count_ < rails_.size() ? progress_dead_rails() : Status::kOk;
}

// Posting comes first: what a rail takes at once (tcp) is then reported by the poll of the same
// call.
Status Link::progress_rail(size_t i) {
  LinkRail& rail = rails_[i];
  flush(i, true);
  if (++rail.quiet_polls == kQuietPolls) hot_ &= ~bit(i);
  if (const Status status = poll_rail(i); status != Status::kOk) return status;
  return rail.up() && up_count_ > 1 && rail.confirmed > 0 ? watch_silence(i) : Status::kOk;
}

// A channel that cannot send may still have arrivals: poll returns them, then the failure.
void Link::flush(size_t i, bool now_known) {
  LinkRail& rail = rails_[i];
  if (rail.queue.queued() == 0) return;
  // Unconfirmed works are done too early to tell anything.
  const bool telling = now_known && rail.confirmed == rail.queue.queued();
  if (telling && rail.queue.in_flight() == 0) {
    rail.rate.begin(attended_ns_, rail.queue.outstanding_bytes());
  }
  (void)rail.queue.flush(*rail.channel, now_ns_);
}

Status Link::poll_rail(size_t i) {
  size_t count = done_.size();
  // A few rounds at most: other comms of the thread want their turn.
  for (int round = 0; round < 4 && count == done_.size() && rails_[i].up(); ++round) {
    count = 0;
    const Status polled = rails_[i].channel->poll(done_, &count);
    for (size_t k = 0; k < count; ++k) {
      if (const Status status = handle(i, done_[k]); status != Status::kOk) return status;
    }
    if (polled != Status::kOk && rails_[i].up()) return fail_rail(i, rails_[i].channel->failure());
  }
  if (rails_[i].up() && rails_[i].rate.has_news()) observe(i);
  return Status::kOk;
}

Status Link::handle(size_t i, const Done& done) {
  if (done.kind == Done::Kind::kSent) {
    handle_sent(i, done);
    return Status::kOk;
  }
  rails_[i].heard_ns = attended_ns_;
  hot_ |= bit(i);
  rails_[i].quiet_polls = 0;
  if (kind_of(done.immediate) == ImmediateKind::kControl) return handle_control(i, done.immediate);
  last_activity_ns_ = now_ns_;
  return user_.on_arrived(i, done.immediate, done.bytes);
}

void Link::handle_sent(size_t i, const Done& done) {
  LinkRail& rail = rails_[i];
  // Both ends have fenced it in this poll: all that was open is repeated elsewhere.
  if (rail.state == RailState::kDown) return;
  const WorkId cookie = WorkId::unpack(done.cookie);
  // Probes show that a rail works, not that a request gets on; unconfirmed works show neither.
  if (cookie.confirmed() && !is_probe(cookie)) last_activity_ns_ = now_ns_;
  uint64_t bytes = 0;
  const bool expected = cookie.kind == WorkId::Kind::kControl
                            ? control_sent(rail, done.cookie, &bytes)
                            : user_.on_sent(cookie, &bytes);
  if (!expected) return;
  if (!rail.up()) return;
  if (cookie.confirmed()) {
    --rail.confirmed;
    rail.busy_since_ns = attended_ns_;
    if (!rail.confirmed_by_nic) rail.heard_ns = attended_ns_;
  }
  rail.queue.complete(bytes);
  if (rails_.size() > 1) rail.rate.completed(bytes);
  if (rail.queue.queued() + rail.queue.in_flight() == 0) busy_ &= ~bit(i);
}

bool Link::control_sent(LinkRail& rail, uint64_t packed, uint64_t* bytes) {
  const WorkId cookie = WorkId::unpack(packed);
  const auto ended = rail.controls.end({cookie.index, cookie.generation});
  if (!ended) return false;
  *bytes = *ended;
  switch (static_cast<ControlOp>(cookie.part)) {
    case ControlOp::kProbe:
      rail.probing = false;
      break;
    case ControlOp::kAnswer:
      rail.answering = false;
      break;
    case ControlOp::kFenced:
    case ControlOp::kJoin:
    case ControlOp::kJoined:
    case ControlOp::kRetry:
      finish_errand(static_cast<size_t>(&rail - rails_.data()), packed);
      break;
    default:
      break;
  }
  return true;
}

Status Link::handle_control(size_t i, uint32_t immediate) {
  const uint32_t value = control_value(immediate);
  const RailLife life = RailLife::unpack(value);
  const ControlOp op = control_op(immediate);
  if (op != ControlOp::kProbe && op != ControlOp::kAnswer) last_activity_ns_ = now_ns_;
  switch (op) {
    case ControlOp::kProbe:
      if (value != 0) answer_probe(i);
      return Status::kOk;
    case ControlOp::kAnswer:
      rails_[i].asked_ns = 0;
      return Status::kOk;
    case ControlOp::kCredit:
    case ControlOp::kSeen:
    case ControlOp::kWanted:
      return user_.on_arrived(i, immediate, 0);
    case ControlOp::kFenced:
    case ControlOp::kJoin:
    case ControlOp::kJoined:
    case ControlOp::kRetry:
      if (life.rail >= rails_.size()) return fail_protocol("a word about a rail that is not there");
      return on_rail_word(op, life);
  }
  return fail_protocol("an unknown control operation");
}

Status Link::fail(Error error) {
  if (failure_.status != Status::kOk) return failure_.status;
  failure_ = std::move(error);
  failure_.what = "peer " + peer_ + ", device " + device_.properties().name + ": " + failure_.what;
  return failure_.status;
}

Status Link::fail_protocol(const char* what) {
  return fail(make_error(Status::kRemote, 0,
                         "the peer sent %s; both ends should run the same version of the plugin",
                         what));
}

Status Link::check_deadline(uint64_t started_ns, const char* waits_for, uint64_t bytes) {
  const uint64_t since = std::max(started_ns, last_activity_ns_);
  if (now_ns_ <= since || now_ns_ - since < seconds_to_ns(settings().request_timeout)) {
    return Status::kOk;
  }
  return fail(make_error(Status::kTimeout, 0,
                         "waited %.0f s for %s (%llu bytes) and nothing arrived; see whether that "
                         "process is stopped or stuck, or raise NCCL_SLIME_REQUEST_TIMEOUT%s",
                         settings().request_timeout, waits_for,
                         static_cast<unsigned long long>(bytes), unanswered_deaths().c_str()));
}

// The log has not named these rails yet: settle() does, once the peer has answered.
std::string Link::unanswered_deaths() const {
  std::string deaths;
  for (const LinkRail& rail : rails_) {
    if (rail.down_because.empty()) continue;
    deaths += std::string("; rail ") + name_of(rail) +
              " is down, and the peer has not answered that: " + rail.down_because;
  }
  return deaths;
}

}  // namespace slime
