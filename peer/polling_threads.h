// Threads of the program that poll a link again and again: they wait for one request after the
// other, or test one until it is done.
//
// While they poll often the link is not armed: no poller names it. That saves each request two or
// three system calls, and a wake-up of the service, which takes a core from the threads that move
// bytes. Instead the service checks every kCheckNs whether they still poll. If none has for
// kGoneNs, the service polls and arms the link itself. The link is also armed while much is under
// way (Peer::threads_suffice).
//
// States: not relied on; relied on, after a window of at least kCheckNs in which threads were there
// for half of the time. A thread is there from one poll to its next, kMostBetweenNs at most. Where
// the service finds something in a link that nobody has polled for kGoneNs, that was found late:
// the program waits in a way that is not seen here (it reads the memory that the peer writes). So
// threads are not relied on for a time of doubt, which doubles each time, up to kLongestDoubtNs,
// and halves with each window in which nothing was late, down to kFirstDoubtNs. While a thread
// sleeps for a request the link is armed.
//
// Threads: service_may_skip() and end_window() by the service, the rest any. The time that threads
// were there is inexact when two poll at the same moment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace slime {

class PollingThreads {
 public:
  static constexpr uint64_t kCheckNs = 2'000'000;
  static constexpr uint64_t kMostBetweenNs = 50'000, kGoneNs = 200'000;
  static constexpr uint64_t kFirstDoubtNs = 20'000'000, kLongestDoubtNs = 1'000'000'000;

  // The link need not be armed.
  bool suffice() const {
    return relied_on_.load() && sleepers_.load(std::memory_order_relaxed) == 0;
  }

  // A thread polls the link, now.
  void polls(uint64_t now_ns) {
    const uint64_t before = last_ns_.exchange(now_ns, std::memory_order_relaxed);
    if (now_ns <= before) return;
    there_ns_.fetch_add(std::min(now_ns - before, kMostBetweenNs), std::memory_order_relaxed);
  }

  // The program waits for something without polling. The caller calls Peer::try_move(), which arms
  // the link.
  void stop_relying() {
    there_ns_.store(0, std::memory_order_relaxed);
    relied_on_.store(false);
  }

  // A thread polls without a pause, until end_spin(). Unless Peer::threads_suffice(), it calls
  // Peer::try_move() after that, which arms the link.
  void begin_spin() { spinners_.fetch_add(1); }
  void end_spin() { spinners_.fetch_sub(1); }
  // A thread sleeps until a request is done. It calls Peer::try_move() after begin_sleep(). Its
  // sleep does not count as time that it was there.
  void begin_sleep() { sleepers_.fetch_add(1, std::memory_order_relaxed); }
  void end_sleep(uint64_t now_ns) {
    last_ns_.store(now_ns, std::memory_order_relaxed);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  // True: a thread has just polled the link and will again. Ends the window if it is over. A thread
  // that ends its spin either sees that threads are not relied on any more, or is not counted here.
  bool service_may_skip(uint64_t now_ns) {
    if (spinners_.load() == 0 && !suffice()) return false;
    if (gone(now_ns)) return false;  // also one that spins and is stopped
    return end_window(now_ns, false) || spinners_.load() > 0;
  }
  // The service has polled; `found`: something had come, or could leave. Returns whether threads
  // are relied on from now on. A window that is not over goes on, unless that was late.
  bool end_window(uint64_t now_ns, bool found) {
    const bool relied_on = relied_on_.load();
    const bool late = relied_on && found && gone(now_ns);
    const uint64_t window_ns = now_ns - since_ns_;
    if (window_ns < kCheckNs && !late) return relied_on;
    since_ns_ = now_ns;
    if (late) {
      doubt_until_ns_ = now_ns + doubt_ns_;
      doubt_ns_ = std::min(doubt_ns_ * 2, kLongestDoubtNs);
    } else if (relied_on) {
      doubt_ns_ = std::max(doubt_ns_ / 2, kFirstDoubtNs);
    }
    const uint64_t there_ns = there_ns_.exchange(0, std::memory_order_relaxed);
    const bool often = there_ns >= window_ns / 2 && now_ns >= doubt_until_ns_;
    relied_on_.store(often);
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
