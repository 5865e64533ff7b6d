// Measures the rate and the latency of one rail of a link, by the completions of its works. They
// decide the rail's share of large messages, and the rail of a small message.
//
// States
//   idle     timed_ is false: nothing is measured
//   timed    from begin() or go_on() until the bytes that were outstanding then have completed
//            (is_timed()); observe() then takes the measurement and ends it, cancel() drops it
// A measurement begins when an idle rail is posted to, or at a poll. So it leaves out idle times,
// and it lasts longer than the bunches in which completions come.
//
// Three figures come of it. Rate: from measurements of 128 KiB or more. Latency: from small works
// that found the rail idle. Window: the bytes that may be outstanding before further stripes wait.
//
// Thread: that of the link. Times are LinkClock::polled_ns, which stands still between calls.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime {

class RailRate {
 public:
  // A full window keeps the rail busy for this long (its depth). The thread may be away from its
  // rails for as long, and the rail does not run dry while stripes wait. If it does run dry, as on
  // a machine with more threads than cores, the depth grows.
  static constexpr double kLeastDepthNs = 8e6, kMostDepthNs = 128e6;
  static constexpr uint64_t kLeastWindow = 128 << 10;  // two stripes of the usual size
  static constexpr uint64_t kFirstWindow = 256 << 10;  // before the first measurement

  explicit RailRate(uint32_t advertised_mbps)
      : ns_per_byte_(8000.0 / std::max(advertised_mbps, 1u)) {}

  double ns_per_byte() const { return ns_per_byte_; }
  double latency_ns() const { return latency_ns_; }  // 0: not known
  uint64_t window() const { return window_; }
  bool measured() const { return measured_ns_ > 0; }
  uint64_t measured_ns() const { return measured_ns_; }  // when the rate was last measured
  uint64_t observed_ns() const { return observed_ns_; }  // when anything last completed

  // Begins a measurement: the rail was idle, and `outstanding` bytes have been posted. `alone`: the
  // process's other links had nothing there, so a small work measures the latency.
  void begin(uint64_t now_ns, uint64_t outstanding, bool alone) {
    timed_ = was_idle_ = true;
    was_alone_ = alone;
    started_ns_ = now_ns;
    expected_ = outstanding;
    completed_ = 0;
  }
  // Begins a measurement in the middle of traffic, after a poll or the posting that follows it:
  // only then is the number of outstanding bytes exact. A running one that is large enough goes on.
  void go_on(uint64_t now_ns, uint64_t outstanding) {
    const bool large_enough = timed_ && expected_ >= kLeastWindow;
    if (large_enough || outstanding < kLeastWindow) return;
    begin(now_ns, outstanding, false);
    was_idle_ = false;
  }
  void completed(uint64_t bytes) {
    completed_ += bytes;
    has_news_ = true;
  }
  void cancel() { timed_ = false; }
  bool has_news() const { return has_news_; }  // completions since the last observe()
  // All timed bytes have completed. The caller then reads the clock before it calls observe().
  bool is_timed() const { return timed_ && completed_ >= expected_; }
  // Called after the completions of a poll. `path_ns` is the least latency of the link's rails; it
  // is subtracted, because it is no part of the rate. The rail's own latency is not used: it
  // differs from that of other rails mostly by chance.
  void observe(uint64_t now_ns, double path_ns);
  // All works have completed while stripes were waiting: the window was too small.
  void ran_dry();
  // For how long the rail has been slow, now that it is or is not.
  uint64_t slow_for(bool slow, uint64_t now_ns) {
    if (!slow || slow_since_ns_ == 0) slow_since_ns_ = slow ? now_ns : 0;
    return slow ? now_ns - slow_since_ns_ : 0;
  }
  // Lowers the rate at once if the timed bytes take much longer than expected.
  void check_overdue(uint64_t now_ns);

 private:
  void take_latency(double ns);
  void take_rate(double bytes, double ns);
  void forget_beyond(double ns);
  void set_rate(double ns_per_byte);

  bool timed_ = false;
  bool was_idle_ = false;   // when the measurement began, so that it includes the latency
  bool was_alone_ = false;  // the same, for the other links of the process
  bool has_news_ = false;
  double ns_per_byte_;
  double latency_ns_ = 0;
  double depth_ns_ = kLeastDepthNs;
  uint64_t window_ = kFirstWindow;
  uint64_t started_ns_ = 0;
  uint64_t expected_ = 0;              // bytes to complete
  uint64_t completed_ = 0;             // of these, so far
  double sum_bytes_ = 0, sum_ns_ = 0;  // of recent measurements; older ones count for less
  uint64_t measured_ns_ = 0, observed_ns_ = 0;
  uint64_t slow_since_ns_ = 0;  // 0: it is not slow
};

}  // namespace slime
