#include "link/failover.h"

#include <array>
#include <utility>

#include "base/log.h"

namespace slime {
namespace {

// After a rail has been up for so many times NCCL_SLIME_RAIL_RETRY, the pauses between tries start
// short again.
constexpr uint64_t kStableLifePauses = 3;

// Names a lost carrier as the cause, whatever error the channel reported: a person can repair it,
// and only the rank with that port knows of it.
Error with_carrier(LinkRail& rail, Error why) {
  if (!rail.carrier.lacks()) return why;
  return make_error(
      why.status, why.code,
      "%s has no carrier; check its cable, its switch port and `ip link` (noticed by: "
      "%s)",
      rail.name(), why.what.c_str());
}

}  // namespace

Status Failover::fail_rail(size_t i, Error why) {
  LinkRail& rail = rails_[i];
  if (rails_.context().ends() && rails_.up_count() == 1)
    return rails_.context().fail(std::move(why));
  why = with_carrier(rail, std::move(why));
  const uint64_t lived_ns = rails_.clock().now_ns - rail.life.since_ns();
  if (lived_ns >= kStableLifePauses * rails_.context().rail_retry_ns) rail.retry.start_again();
  // In this order: no new works, then the last completions, then the queue is emptied.
  // The peer's notice may be among the completions and end this life at once.
  rail.down_because = why.what;
  rails_.set_down(i);
  if (const Status status = fence(i); status != Status::kOk) return status;
  rails_.clear_queue(i);
  if (rails_.up_count() == 0 && !path_.use_lifeline()) return fail_last_rail(i, why);
  repeat_lost_notices();  // about other rails, which this one carried
  send_notice(i);
  return rail.life.peer_fenced() ? finish_fencing(i) : Status::kOk;
}

// A rail that is joining may be up at the peer already, and the peer may have sent over it and
// closed it. Arrivals that such a rail has confirmed are processed here, before the link fails.
Status Failover::fail_last_rail(size_t i, const Error& why) {
  for (size_t k = 0; k < rails_.count(); ++k) {
    if (rails_[k].life.state() != RailState::kJoining || !rails_[k].join.connected) continue;
    if (const Status status = fence(k); status != Status::kOk) return status;
  }
  const bool named = why.what.starts_with("rail ");  // the channel has
  return rails_.context().fail(
      make_error(Status::kRemote, why.code, "%s%s%s%s", named ? "" : "rail ",
                 named ? "" : (std::string(rails_[i].name()) + ": ").c_str(), why.what.c_str(),
                 rails_.count() > 1 ? " (it was the last rail of the link)" : ""));
}

// Closes the channel to the peer's writes, then processes everything that the channel has already
// confirmed: the peer counts that as arrived and will not send it again.
Status Failover::fence(size_t i) {
  rails_[i].channel->fence();
  std::array<Done, 64> done;
  for (;;) {
    size_t count = 0;
    const Status polled = rails_[i].channel->poll(done, &count);
    const Status status = take(i, std::span(done).first(count));
    if (status != Status::kOk || count == 0 || polled != Status::kOk) return status;
  }
}

Status Failover::take(size_t i, std::span<const Done> done) {
  for (const Done& one : done) {
    if (const Status status = sink_.handle_completion(i, one); status != Status::kOk) return status;
  }
  return Status::kOk;
}

void Failover::send_notice(size_t i) {
  RailLife life = rails_.life_of(i);
  life.is_sound = rails_[i].is_sound;
  const OutboxPiece record = rails_.context().user().fence_record(life);
  rails_[i].notice = {true, false};
  path_.send({ControlOp::kFenceNotice, life.pack(), this, static_cast<uint32_t>(i),
              WorkKind::kControl, record});
}

// A notice that was not lost arrives twice, and the peer ignores the second one.
void Failover::repeat_lost_notices() {
  for (size_t i = 0; i < rails_.count(); ++i) {
    if (rails_[i].notice.lost) send_notice(i);
  }
}

Status Failover::on_peer_fenced(size_t i) {
  if (rails_[i].up()) {
    return fail_rail(
        i, make_error(Status::kRemote, 0,
                      rails_[i].is_sound ? "the peer has ended its life, and tries it again"
                                         : "the peer reports that its end failed"));
  }
  return finish_fencing(i);
}

// The warning is written here, not in fail_rail(), because a peer that closes its comm ends all
// rails one after the other and sends no notice: that is no failure to report.
Status Failover::finish_fencing(size_t i) {
  LinkRail& rail = rails_[i];
  if (rail.life.state() != RailState::kFenced) return Status::kOk;
  if (!rail.down_because.empty()) report_down(i);
  rail.life.end();
  rail.retry.plan(rails_.clock().now_ns);
  return rails_.context().user().on_both_fenced(rails_.life_of(i));
}

bool Failover::begin_outage(size_t i) {
  LinkRail& rail = rails_[i];
  const LinkContext& context = rails_.context();
  const unsigned interface = rail.interface();
  rail.outage = interface != 0 ? "interface " + std::to_string(interface) : rail.name();
  if (!rail.carrier.lacks()) rail.outage += " to " + context.peer_host();
  return context.devices.outages().begin(rail.outage);
}

// One cause is one warning of the process: this NIC, or its path to that host. Other links and
// rails that are lost by it say so as information, and so does a rail that is sound.
void Failover::report_down(size_t i) {
  LinkRail& rail = rails_[i];
  const LinkContext& context = rails_.context();
  const bool is_outage = !rail.is_sound || rail.carrier.lacks();
  const bool first = is_outage && begin_outage(i);
  const auto level = first ? log::Level::kWarn : log::Level::kInfo;
  log::write(level, __FILE__, __LINE__,
             "peer %s, device %s: rail %s is down, %zu of %zu rails carry on: %s",
             context.peer.c_str(), context.device_name(), rail.name(), rails_.up_count(),
             rails_.count(), rail.down_because.c_str());
  rail.down_because.clear();
}

std::string Failover::unanswered_deaths() {
  std::string deaths;
  for (const LinkRail& rail : rails_.all()) {
    if (rail.down_because.empty()) continue;
    deaths += std::string("; rail ") + rail.name() +
              " is down, and the peer has not answered that: " + rail.down_because;
  }
  return deaths;
}

}  // namespace slime
