#include "link/rail_scheduler.h"

#include <algorithm>

#include "base/log.h"

namespace slime {
namespace {

constexpr uint64_t kOverdueIntervalNs = 10'000'000;
// Time of a stripe on the slowest rail. A message waits for its last stripe, so the last one should
// not take much longer than the others.
constexpr double kStripeNs = 1e6;
// Time of the shortest stripe on the fastest rail. A shorter one is not worth a doorbell and an
// acknowledgement on another rail.
constexpr double kWorthNs = 50e3;
constexpr uint64_t kLeastStripe = 16 << 10, kMostLeastStripe = 64 << 10;
// A rail without a completion for so long gets a probe: while it has been idle, and, sooner, while
// it gets no stripes because it is slow.
constexpr uint64_t kProbeIdleAfterNs = 1'000'000'000;
constexpr uint64_t kProbeSlowAfterNs = 250'000'000;
constexpr uint64_t kSlowNs =
    5'000'000'000;  // a rail that stays slow for so long is worth a warning

// The measured rate as a share of the advertised one: rails of different speeds in a link are no
// cause for a warning.
double share(const LinkRail& rail) {
  return 8000.0 / rail.rate.ns_per_byte() / std::max(rail.speed_mbps, 1u);
}

}  // namespace

RailScheduler::RailScheduler(LinkRails& rails, RailLiveness& liveness)
    : rails_(rails), liveness_(liveness) {
  const auto least = static_cast<uint64_t>(rails.context().settings().min_stripe);
  if (least > 0) limits_.least = least;
}

void RailScheduler::observe(size_t i) {
  RailRate& rate = rails_[i].rate;
  if (rate.is_timed()) rails_.read_clock();
  rate.observe(rails_.clock().polled_ns, least_latency_ns_);
  if (stripes_wait_ && rate.measured() && !(rails_.busy() >> i & 1)) rate.ran_dry();
  rails_.update_load(i);
  rate.go_on(rails_.clock().polled_ns, rails_.loads()[i].outstanding);
}

// A message that is not cut stays on the rail of the last small one: caches are warm there, and
// works that leave together need fewer calls. Stripes take the rail that rail_choice.h finds.
size_t RailScheduler::choose_rail_for_stripe(uint64_t bytes, uint64_t waiting, bool whole) {
  if (rails_.up_count() <= 1) {
    if (rails_.up_count() == 0) return kNoRail;
    const size_t only = rails_.quickest_rail(0);
    return rails_.room(only) > 0 ? only : kNoRail;
  }
  size_t chosen = kNoRail;
  if (whole) {
    chosen = rails_.quickest_rail(bytes);
  } else {
    rails_.look_at_others(bytes);
  }
  if (!whole || !rails_.loads()[chosen].has_room(bytes))
    chosen = rails_.loads().with_room(bytes, waiting);
  stripes_wait_ = chosen == kNoRail;
  had_stripes_ = true;
  return chosen != kNoRail && rails_.room(chosen) > 0 ? chosen : kNoRail;
}

// Rails differ in their places for reads, and a read must not wait for one while another is idle.
size_t RailScheduler::choose_rail_for_read(uint64_t bytes, uint64_t waiting, bool whole) {
  const size_t chosen = choose_rail_for_stripe(bytes, waiting, whole);
  if (chosen == kNoRail || rails_.room_for_reads(chosen) > 0) return chosen;
  for (size_t i = 0; i < rails_.count(); ++i) {
    const bool fits = rails_[i].up() && rails_.loads()[i].has_room(bytes);
    if (fits && rails_.room_for_reads(i) > 0) return i;
  }
  return kNoRail;
}

void RailScheduler::check_overdue() {
  overdue_due_ns_ = rails_.clock().now_ns + kOverdueIntervalNs;
  for (size_t i = 0; i < rails_.count(); ++i) {
    if (!rails_[i].up()) continue;
    rails_[i].rate.check_overdue(rails_.clock().polled_ns);
    rails_.update_load(i);
  }
  limit_stripes();
}

// Sets the length of stripes by the slowest and the fastest rail. At least one rail must be up.
void RailScheduler::limit_stripes() {
  double slowest = 0, fastest = 0;  // ns per byte
  for (const RailLoad& load : rails_.loads().all()) {
    if (!load.up) continue;
    slowest = std::max(slowest, load.ns_per_byte);
    fastest = fastest == 0 ? load.ns_per_byte : std::min(fastest, load.ns_per_byte);
  }
  if (rails_.context().settings().min_stripe == 0) {
    const auto worth = static_cast<uint64_t>(kWorthNs / fastest);
    limits_.least = std::clamp(worth, kLeastStripe, kMostLeastStripe);
  }
  limits_.unhurried = static_cast<uint64_t>(kStripeNs / slowest) + 1;
}

// A rail that is too slow to get stripes is probed with bytes, so that it is used again when it has
// recovered. Any other unused rail is probed without bytes, for its latency.
void RailScheduler::probe_unused_rails(uint64_t quiet_ns) {
  double fastest = 0;  // ns per byte
  least_latency_ns_ = 0;
  const auto lower = [](double* least, double ns) {
    if (ns > 0 && (*least == 0 || ns < *least)) *least = ns;
  };
  for (const RailLoad& load : rails_.loads().all()) {
    if (!load.up) continue;
    lower(&fastest, load.ns_per_byte);
    lower(&least_latency_ns_, load.latency_ns);
  }
  for (size_t i = 0; i < rails_.count(); ++i) {
    LinkRail& rail = rails_[i];
    if (!rail.up()) continue;
    const uint64_t unseen_ns = rails_.clock().polled_ns - rail.rate.observed_ns();
    const bool unused = !(rails_.busy() >> i & 1) && !rail.signs.probing();
    const bool passed_over = had_stripes_ && rails_.loads()[i].ns_per_byte > 2 * fastest;
    if (unused && passed_over && unseen_ns >= kProbeSlowAfterNs) {
      liveness_.probe(i, RailLiveness::Probe::kWithBytes);
    } else if (unused && unseen_ns >= kProbeIdleAfterNs && quiet_ns < kProbeIdleAfterNs) {
      liveness_.probe(i, RailLiveness::Probe::kPlain);
    }
  }
  warn_of_slow_rail();
  had_stripes_ = false;
}

// Compares each rail with rails of other ports. Sockets of one NIC share its port, and a user
// cannot change how a network treats each flow. A process warns once of each rail, however many
// links find it slow.
void RailScheduler::warn_of_slow_rail() {
  const LinkContext& context = rails_.context();
  for (LinkRail& rail : rails_.all()) {
    const double expected = expected_share(rail);
    const bool slow = recently_measured(rail) && 2 * share(rail) < expected;
    if (rail.rate.slow_for(slow, rails_.clock().polled_ns) < kSlowNs ||
        !context.device.first_to_find_slow(rail.device_rail_index)) {
      continue;
    }
    const double mbps = 8000.0 / rail.rate.ns_per_byte();
    SLIME_WARN(
        "peer %s, device %s: rail %s delivers %.0f Mbit/s, less than half of what its siblings do "
        "(%.0f); it gets less of each message; check its link speed (ethtool), its errors "
        "(`ip -s link`) and its switch port",
        context.peer.c_str(), context.device_name(), rail.name(), mbps,
        mbps * expected / share(rail));
  }
}

// The best share of a rail of another port; 0: none is known.
double RailScheduler::expected_share(const LinkRail& rail) {
  double best = 0;
  for (const LinkRail& other : rails_.all()) {
    if (!recently_measured(other) || same_port(*other.rail, *rail.rail)) continue;
    best = std::max(best, share(other));
  }
  return best;
}

bool RailScheduler::recently_measured(const LinkRail& rail) const {
  return rail.up() && rail.rate.measured() &&
         rails_.clock().polled_ns - rail.rate.measured_ns() < kSlowNs;
}

}  // namespace slime
