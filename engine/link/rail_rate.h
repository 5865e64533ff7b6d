// What one rail of a link delivers, as this end sees it by the completions of its works. From it
// come the rail's share of large messages, and the rail that a small message goes over.
//
// What is outstanding is timed until all of it has completed, one such time after the other: from
// when the idle rail is posted to, or from a poll. That leaves out idle times, and what is
// outstanding lasts longer than the bunches in which completions come. *Rate*: from 128 KiB or
// more. *Latency*: from small works that found the rail idle. *Window*: the bytes that may be
// outstanding before further stripes wait for whichever rail is free first.
//
// Thread: that of the link. Times are Link::polled_ns, which stands while nobody looks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime {

class RailRate {
 public:
  // How long a full window keeps the rail busy: as long as the thread may be away from its rails,
  // for a rail shall not run dry while stripes wait. Deepened when one does, as on a machine with
  // more threads than cores.
  static constexpr double kLeastDepthNs = 8e6, kMostDepthNs = 128e6;
  static constexpr uint64_t kLeastWindow = 128 << 10;  // two stripes of the usual size
  static constexpr uint64_t kFirstWindow = 256 << 10;  // before anything has been measured

  explicit RailRate(uint32_t advertised_mbps)
      : ns_per_byte_(8000.0 / std::max(advertised_mbps, 1u)) {}

  double ns_per_byte() const { return ns_per_byte_; }
  double latency_ns() const { return latency_ns_; }  // 0: not known yet
  uint64_t window() const { return window_; }
  bool measured() const { return measured_ns_ > 0; }
  uint64_t measured_ns() const { return measured_ns_; }  // when the rate was last measured
  uint64_t observed_ns() const { return observed_ns_; }  // when anything last completed

  // `outstanding` bytes are on their way, on a rail that was idle.
  void begin(uint64_t now_ns, uint64_t outstanding) {
    timed_ = was_idle_ = true;
    started_ns_ = now_ns;
    expected_ = outstanding;
    completed_ = 0;
  }
  // After a poll, or what was posted because of one: so many bytes are really outstanding.
  void go_on(uint64_t now_ns, uint64_t outstanding) {
    const bool telling = timed_ && expected_ >= kLeastWindow;
    if (telling || outstanding < kLeastWindow) return;
    begin(now_ns, outstanding);
    was_idle_ = false;
  }
  void completed(uint64_t bytes) {
    completed_ += bytes;
    has_news_ = true;
  }
  void cancel() { timed_ = false; }
  bool has_news() const { return has_news_; }  // completions that were not observed yet
  // What is timed has completed: observe() wants the time of now, not that of the last poll.
  bool is_timed() const { return timed_ && completed_ >= expected_; }
  // After the completions of a poll. `path_ns`: what the least latency of the link's rails is,
  // which was no time of the rate. Not the rail's own: what differs between rails is mostly chance.
  void observe(uint64_t now_ns, double path_ns);
  // All has completed, and stripes have been waiting.
  void ran_dry();
  // What is timed takes longer than it should: not all of it was delivered in the time since.
  void check_overdue(uint64_t now_ns);

 private:
  void take_latency(double ns);
  void take_rate(double bytes, double ns);
  void set_rate(double ns_per_byte);

  bool timed_ = false;
  bool was_idle_ = false;  // when that began: it includes the latency
  bool has_news_ = false;
  double ns_per_byte_;
  double latency_ns_ = 0;
  double depth_ns_ = kLeastDepthNs;
  uint64_t window_ = kFirstWindow;
  uint64_t started_ns_ = 0;
  uint64_t expected_ = 0;              // bytes to complete
  uint64_t completed_ = 0;             // of them, so far
  double sum_bytes_ = 0, sum_ns_ = 0;  // of what was timed, older ones counting for less
  uint64_t measured_ns_ = 0, observed_ns_ = 0;
};

}  // namespace slime
