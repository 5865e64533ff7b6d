// Announces receives by CTS, in the order of their posting. Each CTS passes through send().
//
// States of a receive: not announced (before announce), held, announced (send has given it a
// sequence), or withdrawn, if an eager message completes it while it is held.
//
// Why CTS are held: eager messages need no CTS. While they come one after the other, each CTS would
// only cost both ends a work, in the middle of a latency-bound exchange. So after some eager
// messages in a row, CTS are held until the sender asks for one (kWanted: its message is too large
// for a buffer), or no message has come for long. A stripe ends the streak. A receive with more
// room than those that these messages completed is not held: its message may well be a large one.
//
// When a CTS leaves: the first one after the link was moved is posted at once, with those before
// it, because the receiver may make no further call until its message has come. Those that follow
// leave together when the link is moved.
//
// Invariant: a held receive has no sequence yet, because the sender expects every sequence in
// order, and a withdrawn receive never gets one.
//
// Thread: that of the comm.
#pragma once

#include <array>
#include <cstdint>

#include "link/link.h"
#include "message/receiver/eager_inbox.h"
#include "message/receiver/receive_requests.h"

namespace slime {

class CtsOutbox {
 public:
  // Each CTS returns the credits of `eager`.
  CtsOutbox(Link& link, EagerInbox& eager, ReceiveRequests& requests);

  uint32_t next_sequence() const { return next_; }
  void announce(ReceiveRequest& request);  // sends its CTS, or holds it
  // The link was moved. Sends the held CTS, if they need not be held any more.
  void on_moved();
  // nullptr: none is held.
  ReceiveRequest* oldest_held() const {
    return first_held_ == last_held_ ? nullptr : held_[first_held_ % held_.size()];
  }
  // The receive is complete; it may be held.
  void withdraw(ReceiveRequest& request);
  // The rail that carried its CTS died.
  void send_again(ReceiveRequest& request) { submit(request, true); }

  void on_eager(uint64_t capacity);  // of the receive that the message completed
  void on_stripe() { eager_streak_ = 0; }
  Status on_wanted(uint32_t cts);

 private:
  // Longer than the pause between two small operations of a program, such as the start of a kernel.
  // After a longer pause the CTS does not delay an exchange, and the sender need not ask for it.
  static constexpr uint64_t kPatienceNs = 1'000'000;

  bool is_streak() const {
    return eager_streak_ >= kEagerStreak && static_cast<int32_t>(wanted_ - next_) <= 0;
  }
  bool is_recent(uint64_t now_ns) const { return now_ns - last_eager_ns_ < kPatienceNs; }
  bool may_hold(const ReceiveRequest& request) const;
  void send(ReceiveRequest& request);
  uint32_t send_held();  // returns the rails that it has used, a bit each
  void post(uint32_t rails);
  void write(ReceiveRequest& request);
  void submit(ReceiveRequest& request, bool again);

  Link& link_;
  EagerInbox& eager_;
  ReceiveRequests& requests_;
  uint32_t next_ = 0;  // sequence of the next CTS
  // The held receives, in a ring by ReceiveRequest::hold; nullptr: withdrawn.
  std::array<ReceiveRequest*, kCtsEntries> held_;
  uint32_t first_held_ = 0, last_held_ = 0;  // positions; the last one is beyond
  bool posted_ = false;                      // announce() has, since the link was moved
  uint32_t eager_streak_ = 0;                // eager messages in a row
  uint64_t eager_capacity_ = 0;              // most room of a receive that they completed
  uint64_t last_eager_ns_ = 0;
  uint32_t wanted_ = 0;  // CTS below this one are not held: the sender waits for them
};

}  // namespace slime
