#include "link/rail/rail_rate.h"

namespace slime {
namespace {

constexpr double kMemoryNs = 100e6;  // sum of the times that make up the rate
// The same of earlier ones, when a measurement shows more than kRecovers times the rate. Otherwise
// a rail that was slow for a moment, and so gets few stripes, would need many measurements to get
// its share again (docs/performance.md).
constexpr double kRecoveryNs = 24e6, kRecovers = 2;
constexpr double kDeeper = 2, kShallower = 31.0 / 32;  // steps of the window's depth
constexpr double kLatencyDrift = 1.0 / 16;  // share of the difference by which the latency rises
constexpr uint64_t kStaleNs = 100'000'000;  // after this, a single work may raise the rate
constexpr double kRiseByProbe = 8;          // the factor by which a single work raises it at most
constexpr double kOverdue = 2;              // times the expected time
constexpr uint64_t kSmall = 16 << 10;  // a smaller work measures the latency, a larger one the rate
constexpr double kLargestWindow = 1 << 30;
constexpr double kFastest = 1e-3, kSlowest = 1e6;  // ns per byte: 8 Tbit/s, 8 kbit/s

}  // namespace

void RailRate::observe(uint64_t now_ns, double path_ns) {
  observed_ns_ = now_ns;
  has_news_ = false;
  if (!is_timed()) return;
  const double ns = static_cast<double>(now_ns - started_ns_);
  const double bytes = static_cast<double>(completed_);
  if (completed_ >= kLeastWindow) {
    measured_ns_ = now_ns;
    depth_ns_ = std::max(kLeastDepthNs, depth_ns_ * kShallower);
    take_rate(bytes, was_idle_ ? std::max(ns - path_ns, ns / 2) : ns);
  } else if (completed_ < kSmall) {
    // Behind works of other links it takes no less than the path does.
    const double latency_ns = ns - bytes * ns_per_byte_;
    if (was_alone_ || latency_ns < latency_ns_) take_latency(latency_ns);
  } else if (now_ns - measured_ns_ > kStaleNs && ns < bytes * ns_per_byte_) {
    // A single work, after a time without measurements. Its time includes the latency, so the rail
    // is at least as fast as it says. One work proves little, so the rate rises in steps.
    sum_bytes_ = sum_ns_ = 0;
    take_rate(bytes, std::max(ns, bytes * ns_per_byte_ / kRiseByProbe));
  }
  timed_ = false;
}

// The figure falls quickly and rises slowly: most works take longer than the path does, because a
// thread polls late.
void RailRate::take_latency(double ns) {
  ns = std::max(ns, 1.0);
  if (latency_ns_ == 0 || ns < latency_ns_) {
    latency_ns_ = ns;
  } else {
    latency_ns_ += (std::min(ns, 2 * latency_ns_) - latency_ns_) * kLatencyDrift;
  }
}

// The rate is the quotient of two sums, not a mean of quotients: completions come in bunches, and
// the quotient of a single measurement may be several times too high or too low.
void RailRate::take_rate(double bytes, double ns) {
  ns = std::max(ns, 1.0);
  if (bytes * sum_ns_ > kRecovers * ns * sum_bytes_) forget_beyond(kRecoveryNs);
  sum_bytes_ += bytes;
  sum_ns_ += ns;
  set_rate(sum_ns_ / sum_bytes_);
  forget_beyond(kMemoryNs);
}

void RailRate::forget_beyond(double ns) {
  if (sum_ns_ <= ns) return;
  sum_bytes_ *= ns / sum_ns_;
  sum_ns_ = ns;
}

void RailRate::set_rate(double ns_per_byte) {
  ns_per_byte_ = std::clamp(ns_per_byte, kFastest, kSlowest);
  if (!measured()) return;
  const double window = (depth_ns_ + 2 * latency_ns_) / ns_per_byte_;
  window_ = std::max(kLeastWindow, static_cast<uint64_t>(std::min(window, kLargestWindow)));
}

void RailRate::ran_dry() {
  depth_ns_ = std::min(kMostDepthNs, depth_ns_ * kDeeper);
  set_rate(ns_per_byte_);
}

void RailRate::check_overdue(uint64_t now_ns) {
  if (!timed_ || expected_ < kSmall) return;
  const double ns = static_cast<double>(now_ns - started_ns_) - latency_ns_;
  const double bytes = static_cast<double>(expected_);
  if (ns < kOverdue * bytes * ns_per_byte_ + kLeastDepthNs) return;
  sum_bytes_ = bytes;
  sum_ns_ = ns;
  set_rate(ns / bytes);
}

}  // namespace slime
