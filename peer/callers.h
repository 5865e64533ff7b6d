// Whether threads of the program look at a link so often that nobody else need: they wait for
// requests one after the other, or test one again and again.
//
// While they do, pollers do not name the link. That saves each request two or three calls of the
// kernel, and the service a wake-up that takes a core from those who move bytes. Instead the
// service looks at the link every kWindowNs, in case they come no more.
//
// States: relied on, or not. The service decides at its looks: callers were there for half of the
// time since the look before. What such a look finds although no caller has come for kGoneNs was
// found late: then callers are not relied on for a while, which doubles each time, and halves with
// each window that was well. A program may wait for the peer in ways that cannot be seen from here
// (it reads the memory that the peer writes). While a thread sleeps for a request, pollers name the
// link.
//
// Threads: weigh() by the service, the rest any. The time that callers were there is inexact when
// two come at the same moment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace slime {

class Callers {
 public:
  static constexpr uint64_t kWindowNs = 2'000'000;
  static constexpr uint64_t kMostBetweenNs = 50'000;  // two looks of one that stays
  static constexpr uint64_t kGoneNs = 200'000;
  static constexpr uint64_t kFirstDoubtNs = 20'000'000, kLongestDoubtNs = 1'000'000'000;

  // The link is looked at by callers, and by the service within kWindowNs.
  bool look_after() const {
    return relied_on_.load(std::memory_order_relaxed) &&
           sleepers_.load(std::memory_order_relaxed) == 0;
  }

  // One looks at the link, now.
  void came(uint64_t now_ns) {
    const uint64_t before = last_ns_.exchange(now_ns, std::memory_order_relaxed);
    if (now_ns <= before) return;
    there_ns_.fetch_add(std::min(now_ns - before, kMostBetweenNs), std::memory_order_relaxed);
  }

  // The program wants to be told of what comes, without a look at the link.
  void rely_on_pollers() {
    there_ns_.store(0, std::memory_order_relaxed);
    relied_on_.store(false, std::memory_order_relaxed);
  }

  // A thread looks again and again, until end_spin(). Then it sees to it that somebody looks after
  // the link, unless look_after().
  void begin_spin() { spinners_.fetch_add(1, std::memory_order_relaxed); }
  void end_spin() { spinners_.fetch_sub(1, std::memory_order_relaxed); }
  void begin_sleep() { sleepers_.fetch_add(1, std::memory_order_relaxed); }
  void end_sleep() {
    last_ns_.store(steady_now_ns(), std::memory_order_relaxed);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  // For the service: callers have just looked at the link and will again. Its own look is due in
  // kWindowNs.
  bool need_not_look(uint64_t now_ns) {
    const bool spin = spinners_.load(std::memory_order_relaxed) > 0;
    if ((!spin && !look_after()) || gone(now_ns)) return false;  // a spinning thread may be stopped
    return weigh(now_ns, false) || spin;
  }
  // When it has looked; `found`: something had come, or could leave. True: callers are relied on,
  // and the next look is due in kWindowNs.
  bool weigh(uint64_t now_ns, bool found) {
    const bool relied_on = relied_on_.load(std::memory_order_relaxed);
    const uint64_t window_ns = now_ns - since_ns_;
    if (window_ns < kWindowNs) return relied_on;
    since_ns_ = now_ns;
    if (relied_on && found && gone(now_ns)) {
      doubt_until_ns_ = now_ns + doubt_ns_;
      doubt_ns_ = std::min(doubt_ns_ * 2, kLongestDoubtNs);
    } else if (relied_on) {
      doubt_ns_ = std::max(doubt_ns_ / 2, kFirstDoubtNs);
    }
    const uint64_t there_ns = there_ns_.exchange(0, std::memory_order_relaxed);
    const bool often = there_ns >= window_ns / 2 && now_ns >= doubt_until_ns_;
    relied_on_.store(often, std::memory_order_relaxed);
    return often;
  }

 private:
  bool gone(uint64_t now_ns) const {
    return now_ns > last_ns_.load(std::memory_order_relaxed) + kGoneNs;
  }

  std::atomic<bool> relied_on_ = false;
  std::atomic<uint64_t> last_ns_ = 0, there_ns_ = 0;
  std::atomic<uint32_t> spinners_ = 0, sleepers_ = 0;
  // Of the service.
  uint64_t since_ns_ = 0, doubt_until_ns_ = 0, doubt_ns_ = kFirstDoubtNs;
};

}  // namespace slime
