// When a worker sends a contribution again: RoundTrip has the time-out of a worker, a RoundTimer
// the times of one round, and Retransmission moves them on.
//
// States of a timer: begun (begin()), sent once or more (sent()), answered. One that was `resent`
// is not measured (Karn). Invariant: no deadline of a timer is before next_ns().
//
// Thread rules: one thread. No clock of its own: the caller gives the time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slime {

// The time-out of RFC 6298: smoothed round trip plus four times its deviation, from rounds that
// were sent once (Karn). What a time-out has doubled stays doubled until such a round has been
// measured (section 5, note after 5.7): otherwise, once round trips have become longer than the
// time-out, every round would be sent twice and none ever measured.
//
// On a full link round trips hardly differ, and four times next to nothing is no margin: a worker
// that the scheduler delays for a moment would send a whole window again. So the margin is a
// round trip at least.
class RoundTrip {
 public:
  struct Limits {
    uint64_t initial_ns = 5'000'000;
    uint64_t min_ns = 1'000'000;
    uint64_t max_ns = 200'000'000;
  };
  explicit RoundTrip(const Limits& limits) : limits_(limits) {}

  void measured(uint64_t ns) {
    backoff_ = 0;
    if (smoothed_ns_ == 0) {
      smoothed_ns_ = ns;
      deviation_ns_ = ns / 2;
      return;
    }
    const uint64_t off = ns > smoothed_ns_ ? ns - smoothed_ns_ : smoothed_ns_ - ns;
    deviation_ns_ += off / 4 - deviation_ns_ / 4;
    smoothed_ns_ += ns / 8 - smoothed_ns_ / 8;
  }

  // If many slots time out together, as after a pause of this thread, the time-out doubles once.
  void timed_out(uint64_t now_ns) {
    if (now_ns < doubled_until_ns_) return;
    backoff_ = std::min(backoff_ + 1, kMostDoublings);
    doubled_until_ns_ = now_ns + timeout_ns(0);
  }

  // Doubled per attempt, capped.
  uint64_t timeout_ns(uint32_t attempts) const {
    const uint64_t margin = std::max(4 * deviation_ns_, smoothed_ns_);
    const uint64_t base = smoothed_ns_ == 0 ? limits_.initial_ns : smoothed_ns_ + margin;
    const uint64_t first = std::clamp(base, limits_.min_ns, limits_.max_ns);
    const uint32_t doublings = std::min(std::max(attempts, backoff_), kMostDoublings);
    return std::min(first << doublings, limits_.max_ns);
  }
  uint64_t smoothed_ns() const { return smoothed_ns_; }

 private:
  static constexpr uint32_t kMostDoublings = 16;

  const Limits limits_;
  uint32_t backoff_ = 0;
  uint64_t doubled_until_ns_ = 0;
  uint64_t smoothed_ns_ = 0;
  uint64_t deviation_ns_ = 0;
};

// Of the round that a slot waits for.
struct RoundTimer {
  uint32_t attempts = 0;
  bool resent = false;  // its round trip cannot be measured
  uint64_t first_sent_ns = 0;
  uint64_t observed_ns = 0;  // then too, in observed time (switch_health.h)
  uint64_t deadline_ns = 0;  // when to send again
  uint64_t query_ns = 0;     // when to ask the switch which ranks are missing
};

class Retransmission {
 public:
  Retransmission(const RoundTrip::Limits& limits, uint64_t suspect_ns)
      : suspect_ns_(suspect_ns), round_trip_(limits) {}

  void begin(RoundTimer* timer, uint64_t now_ns, uint64_t observed_ns) const {
    timer->attempts = 0;
    timer->first_sent_ns = now_ns;
    timer->observed_ns = observed_ns;
    timer->query_ns = now_ns + suspect_ns_;
  }
  void sent(RoundTimer* timer, uint64_t now_ns) {
    timer->deadline_ns = now_ns + round_trip_.timeout_ns(timer->attempts++);
    next_ns_ = std::min(next_ns_, timer->deadline_ns);
  }
  void answered(const RoundTimer& timer, uint64_t now_ns) {
    if (!timer.resent) round_trip_.measured(now_ns - timer.first_sent_ns);
  }
  void timed_out(RoundTimer* timer, uint64_t now_ns) {
    round_trip_.timed_out(now_ns);
    timer->resent = true;
  }
  // Whether to ask now; the next question is due a while later.
  bool take_query(RoundTimer* timer, uint64_t now_ns) const {
    if (now_ns < timer->query_ns) return false;
    timer->query_ns = now_ns + suspect_ns_;
    return true;
  }

  // No timer's deadline is before this. Looking through all timers sets it anew.
  uint64_t next_ns() const { return next_ns_; }
  void set_next(uint64_t ns) { next_ns_ = ns; }
  uint64_t round_trip_ns() const { return round_trip_.smoothed_ns(); }

 private:
  const uint64_t suspect_ns_;
  RoundTrip round_trip_;
  uint64_t next_ns_ = 0;
};

}  // namespace slime
