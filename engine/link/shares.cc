// What the rails of a link deliver, and what follows from it: which rail takes a stripe, which rail
// is tried again, of which a person should know. See rail_rate.h and rail_choice.h.

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "engine/link/link.h"

namespace slime {
namespace {

constexpr uint64_t kOverdueIntervalNs = 10'000'000;
// A message waits for its last stripe: that shall not keep a rail much longer than the others.
constexpr double kStripeNs = 1e6;
// What a rail does in this time is not worth a doorbell and an acknowledgement on another one too.
constexpr double kWorthNs = 50e3;
constexpr uint64_t kLeastStripe = 16 << 10, kMostLeastStripe = 64 << 10;
constexpr uint64_t kUnseenNs = 1'000'000'000;  // a rail that nothing has completed on is asked
constexpr uint64_t kRetryNs = 250'000'000;     // a slow rail that gets no stripes is tried
constexpr uint64_t kSlowNs = 5'000'000'000;    // a rail that stays slow is worth a warning

}  // namespace

void Link::update_load(size_t i) {
  const LinkRail& rail = rails_[i];
  loads_.set(i, {rail.rate.ns_per_byte(), rail.rate.latency_ns(), rail.queue.outstanding_bytes(),
                 rail.rate.window(), rail.up()});
}

void Link::observe(size_t i) {
  RailRate& rate = rails_[i].rate;
  if (rate.is_timed()) read_clock();
  rate.observe(attended_ns_, least_latency_ns_);
  if (stripes_wait_ && rate.measured() && !(busy_ & bit(i))) rate.ran_dry();
  update_load(i);
  rate.go_on(attended_ns_, loads_[i].outstanding);
}

// A message that is not cut stays with the favourite, as a small one does: its rail is warm, and
// what is sent there together needs fewer calls.
size_t Link::pick_for_stripe(uint64_t bytes, uint64_t waiting, bool whole) {
  if (up_count_ <= 1) return up_count_ == 1 && room(favourite_) > 0 ? favourite_ : kNoRail;
  size_t chosen = whole ? pick(bytes) : kNoRail;
  if (!whole || !loads_[chosen].has_room(bytes)) chosen = loads_.with_room(bytes, waiting);
  stripes_wait_ = chosen == kNoRail;
  had_stripes_ = true;
  return chosen != kNoRail && room(chosen) > 0 ? chosen : kNoRail;
}

void Link::post_more() {
  for (uint32_t left = busy_; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    flush(i, true);
    if (rails_.size() > 1) rails_[i].rate.go_on(attended_ns_, loads_[i].outstanding);
  }
}

void Link::check_overdue() {
  overdue_due_ns_ = now_ns_ + kOverdueIntervalNs;
  for (size_t i = 0; i < rails_.size(); ++i) {
    if (!rails_[i].up()) continue;
    rails_[i].rate.check_overdue(attended_ns_);
    update_load(i);
  }
  limit_stripes();
}

// At least one rail is up.
void Link::limit_stripes() {
  double slowest = 0, fastest = 0;  // ns per byte
  for (const RailLoad& load : loads_.all()) {
    if (!load.up) continue;
    slowest = std::max(slowest, load.ns_per_byte);
    fastest = fastest == 0 ? load.ns_per_byte : std::min(fastest, load.ns_per_byte);
  }
  if (settings().min_stripe == 0) {
    const auto worth = static_cast<uint64_t>(kWorthNs / fastest);
    stripe_limits_.least = std::clamp(worth, kLeastStripe, kMostLeastStripe);
  }
  stripe_limits_.unhurried = static_cast<uint64_t>(kStripeNs / slowest) + 1;
}

void Link::judge_rails() {
  double fastest = 0;  // ns per byte
  least_latency_ns_ = 0;
  const auto lower = [](double* least, double ns) {
    if (ns > 0 && (*least == 0 || ns < *least)) *least = ns;
  };
  for (const RailLoad& load : loads_.all()) {
    if (!load.up) continue;
    lower(&fastest, load.ns_per_byte);
    lower(&least_latency_ns_, load.latency_ns);
  }
  for (size_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    if (!rail.up()) continue;
    const uint64_t unseen_ns = attended_ns_ - rail.rate.observed_ns();
    const bool unused = !(busy_ & bit(i)) && !rail.probing;
    const bool passed_over = had_stripes_ && loads_[i].ns_per_byte > 2 * fastest;
    if (unused && passed_over && unseen_ns >= kRetryNs) {
      probe(i, Probe::kWithBytes);
    } else if (unused && unseen_ns >= kUnseenNs && now_ns_ - last_activity_ns_ < kUnseenNs) {
      probe(i, Probe::kPlain);
    }
  }
  warn_of_slow_rail();
  had_stripes_ = false;
}

// Rails of other ports are its siblings. Sockets of one NIC share its port, and how a network
// treats each flow is not for the user to mend. Said once in a process for each rail, whatever many
// links notice it.
void Link::warn_of_slow_rail() {
  for (LinkRail& rail : rails_) {
    const double expected = expected_share(rail);
    if (!recently_measured(rail) || 2 * share(rail) >= expected) {
      rail.slow_since_ns = 0;
      continue;
    }
    if (rail.slow_since_ns == 0) rail.slow_since_ns = attended_ns_;
    if (attended_ns_ - rail.slow_since_ns < kSlowNs ||
        !device_.first_to_find_slow(rail.key_index)) {
      continue;
    }
    const double mbps = 8000.0 / rail.rate.ns_per_byte();
    SLIME_WARN(
        "peer %s, device %s: rail %s delivers %.0f Mbit/s, less than half of what its siblings do "
        "(%.0f); it gets less of each message; check its link speed (ethtool), its errors "
        "(`ip -s link`) and its switch port",
        peer_.c_str(), device_.properties().name.c_str(), name_of(rail), mbps,
        mbps * expected / share(rail));
  }
}

// The best share of a rail of another port; 0: none is known.
double Link::expected_share(const LinkRail& rail) const {
  double best = 0;
  for (const LinkRail& other : rails_) {
    if (!recently_measured(other) || same_port(*other.rail, *rail.rail)) continue;
    best = std::max(best, share(other));
  }
  return best;
}

// Of what it advertises: a link of rails of several speeds is no cause for alarm.
double Link::share(const LinkRail& rail) {
  return 8000.0 / rail.rate.ns_per_byte() / std::max(rail.speed_mbps, 1u);
}

bool Link::recently_measured(const LinkRail& rail) const {
  return rail.up() && rail.rate.measured() && attended_ns_ - rail.rate.measured_ns() < kSlowNs;
}

}  // namespace slime
