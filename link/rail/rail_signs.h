// The evidence that one rail works: what its works and those of the peer have shown.
//
// Three things are under way at most once: a probe, our answer to the peer's, and the question for
// an answer. Times are polled time (LinkClock). Thread: that of the link.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace slime {

class RailSigns {
 public:
  static constexpr uint32_t kQuietPolls = 64;

  // A life begins, without evidence of the last one; it ends.
  void begin_life(uint64_t now_ns) {
    *this = RailSigns();
    busy_since_ns_ = heard_ns_ = now_ns;
  }
  void end_life() { unproven_ = false; }
  void forget_works() { confirmed_ = 0; }

  // Of works of this end. `confirmed`: not Work::unconfirmed.
  void submitted(bool confirmed, uint64_t now_ns) {
    if (confirmed) {
      if (confirmed_++ == 0) busy_since_ns_ = now_ns;
    } else if (!unproven_) {
      unproven_ = true;
      unproven_ns_ = now_ns;
    }
  }
  // `by_process`: the peer's process polls its rails, or this would not have come.
  void completed(bool by_process, uint64_t now_ns) {
    SLIME_CHECK(confirmed_ > 0);
    --confirmed_;
    busy_since_ns_ = now_ns;
    if (by_process) heard_ns_ = now_ns;
  }
  void arrived(uint64_t now_ns) {
    heard_ns_ = now_ns;
    quiet_polls_ = 0;
  }
  // True: from this poll on it counts as quiet. Call it before each poll.
  bool becomes_quiet() { return ++quiet_polls_ == kQuietPolls; }

  // Works queued or in flight whose arrival the peer's rail confirms.
  uint32_t confirmed() const { return confirmed_; }
  // Since then there have been such works, and none has completed.
  uint64_t busy_since_ns() const { return busy_since_ns_; }
  // The latest sign that the peer's process polls its rails.
  uint64_t heard_ns() const { return heard_ns_; }
  bool unproven() const { return unproven_; }  // carried unconfirmed works since its last probe
  bool unproven_for(uint64_t ns, uint64_t now_ns) const {
    return unproven_ && now_ns - unproven_ns_ >= ns;
  }

  bool probing() const { return probing_; }
  void begin_probe(bool asks, uint64_t now_ns) {
    probing_ = true;
    unproven_ = false;
    if (asks) asked_ns_ = now_ns;
  }
  void end_probe() { probing_ = false; }
  // The peer has been asked for an answer within so long, and it is still missing.
  bool asked_within(uint64_t ns, uint64_t now_ns) const {
    return asked_ns_ != 0 && now_ns - asked_ns_ < ns;
  }
  void answered() { asked_ns_ = 0; }
  bool answering() const { return answering_; }
  void set_answering(bool answering) { answering_ = answering; }

  // Whether it is time to judge the rail's silence; not again before `pause_ns`.
  bool may_judge(uint64_t pause_ns, uint64_t now_ns) {
    if (now_ns - judged_ns_ < pause_ns) return false;
    judged_ns_ = now_ns;
    return true;
  }

 private:
  uint32_t confirmed_ = 0;
  uint32_t quiet_polls_ = 0;
  uint64_t busy_since_ns_ = 0;
  uint64_t heard_ns_ = 0;
  uint64_t judged_ns_ = 0;
  uint64_t asked_ns_ = 0;     // 0: no answer is missing
  uint64_t unproven_ns_ = 0;  // of the first unconfirmed work after the last probe
  bool unproven_ = false;
  bool probing_ = false;
  bool answering_ = false;
};

}  // namespace slime
