#include "link/link_rails.h"

#include <algorithm>
#include <utility>

#include "settings/times.h"

namespace slime {
LinkRails::LinkRails(LinkContext& context, const LinkMemory& memory)
    : context_(context), memory_(memory) {
  clock_.now_ns = context.devices.clock().now_ns();
}

LinkRails::~LinkRails() {
  for (LinkRail& rail : rails_) {
    context_.device.add_outstanding(rail.device_rail_index, -rail.told);
    context_.devices.fold(*rail.rail, snapshot(rail.channel->counters));
    if (!rail.outage.empty()) (void)context_.devices.outages().end(rail.outage);
  }
}

void LinkRails::add(LinkChannel channel) {
  Rail* rail = context_.device.rails()[channel.device_rail_index];
  const Settings& settings = context_.settings();
  const bool connected = channel.connected;
  PostPolicy policy;
  policy.max_batch = static_cast<uint32_t>(settings.max_batch);
  policy.watermark = static_cast<uint32_t>(settings.watermark);
  policy.flush_ns = static_cast<uint64_t>(settings.flush_us) * 1000;
  rails_.emplace_back(std::move(channel), rail,
                      PostQueue::fit(policy, rail->caps(), context_.channel_depth),
                      context_.rail_retry_ns, clock_.now_ns);
  loads_.add();
  const size_t i = rails_.size() - 1;
  connected ? begin_life(i) : update_load(i);
}

// A long gap between two polls adds only a little polled time. After it, the measurement of rates
// starts again, because nobody saw when the works of that time completed.
void LinkRails::read_clock() {
  const uint64_t before_ns = clock_.now_ns;
  clock_.now_ns = context_.devices.clock().now_ns();
  const uint64_t away_ns = clock_.now_ns - before_ns;
  clock_.polled_ns += std::min(away_ns, context_.rail_timeout_ns / 16);
  if (away_ns < times::kPolledGap) return;
  for (LinkRail& rail : rails_) rail.rate.cancel();
}

// All room for control works is taken only if the peer confirms none of them: then it fails.
void LinkRails::submit_control(size_t i, const ControlWork& control) {
  if (rails_[i].works.controls() == kControlRoom) {
    (void)context_.fail(make_error(Status::kRemote, 0,
                                   "rail %s: the peer confirms none of %u control works",
                                   rails_[i].name(), kControlRoom));
    return;
  }
  Work work = write_of(control.piece, i, control_immediate(control.op, control.value));
  work.unconfirmed = needs_no_confirmation(control.op);
  submit(i, work, control.owner, control.part, control.kind);
}

// A failure to post is not handled here: the channel may still have arrivals, and the next poll
// returns first these and then the failure.
void LinkRails::flush_queued(size_t i, bool now_known) {
  LinkRail& rail = rails_[i];
  // Unconfirmed works complete too early to be measured.
  const bool measurable = now_known && rail.signs.confirmed() == rail.queue.queued();
  if (measurable && rail.queue.in_flight() == 0) {
    const uint64_t all = context_.device.outstanding(rail.device_rail_index);
    rail.rate.begin(clock_.polled_ns, rail.queue.outstanding_bytes(), all <= rail.told);
  }
  (void)rail.queue.flush(*rail.channel, clock_.now_ns);
}

// A new life starts with no evidence of the last one: signs, rate and load begin anew.
void LinkRails::begin_life(size_t i) {
  LinkRail& rail = rails_[i];
  SLIME_CHECK(rail.queue.queued() == 0 && rail.queue.in_flight() == 0 && rail.works.none_open());
  rail.signs.begin_life(clock_.polled_ns);
  rail.rate = RailRate(rail.speed_mbps);
  update_load(i);
  if (++up_count_ == 1) preferred_ = i;
}

void LinkRails::set_up(size_t i) {
  rails_[i].life.come_up(clock_.now_ns);
  begin_life(i);
}

void LinkRails::set_down(size_t i) {
  LinkRail& rail = rails_[i];
  rail.life.take_down(clock_.now_ns);
  rail.signs.end_life();
  update_load(i);
  --up_count_;
  for (size_t k = 0; up_count_ == 1 && k < rails_.size(); ++k) {
    if (rails_[k].up()) preferred_ = k;
  }
}

void LinkRails::clear_queue(size_t i) {
  LinkRail& rail = rails_[i];
  SLIME_CHECK(!rail.up());
  rail.queue.clear();
  rail.reads = 0;
  rail.signs.forget_works();
  update_load(i);
  busy_ &= ~(uint32_t{1} << i);
  rail.works.hand_back(false);
}

// What the other links have there is the sum of all but our part of it.
void LinkRails::update_load(size_t i) {
  LinkRail& rail = rails_[i];
  const uint64_t own = rail.queue.outstanding_bytes();
  if (own == 0 ? rail.told > 0 : own + kWorthTelling <= rail.told) tell_others(rail);
  const bool alone = rails_.size() == 1 || rail.rate.measured();
  const uint64_t all = alone ? 0 : context_.device.outstanding(rail.device_rail_index);
  loads_.set(i, {rail.rate.ns_per_byte(), rail.rate.latency_ns(), own, rail.rate.window(),
                 rail.up(), all > rail.told ? all - rail.told : 0});
}

void LinkRails::update_unmeasured() {
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i].up() && !rails_[i].rate.measured()) update_load(i);
  }
}

void LinkRails::tell_others(LinkRail& rail) {
  if (rails_.size() == 1) return;
  const uint64_t own = rail.queue.outstanding_bytes();
  context_.device.add_outstanding(rail.device_rail_index, own - std::exchange(rail.told, own));
}

}  // namespace slime
