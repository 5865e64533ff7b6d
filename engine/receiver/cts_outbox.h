// Announces receives by CTS, in the order of their posting: each CTS passes through send().
//
// Eager messages do not need one, and while they come one after the other, each CTS would only cost
// both ends a work, in the middle of a latency-bound exchange. So after some eager messages in a
// row, CTS are held back until the sender asks for one (kWanted: it has a message that is too
// large), or no message has come for long. A stripe ends the streak.
//
// What is held back has no sequence yet: the sender expects all of them in order, and a receive
// that an eager message completes while it is held needs none.
//
// Thread: that of the comm.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/link/link.h"
#include "engine/receiver/eager_inbox.h"
#include "engine/receiver/receive_requests.h"

namespace slime {

class CtsOutbox {
 public:
  // `eager`: its credits return with each CTS.
  CtsOutbox(Link& link, const Outbox& outbox, EagerInbox& eager);

  uint32_t next_sequence() const { return next_; }
  void announce(ReceiveRequest& request);  // now, or later
  // What has been held back for long enough.
  void announce_overdue();
  // Complete, and perhaps not announced yet.
  void withdraw(ReceiveRequest& request);
  // The rail that carried it died.
  void send_again(ReceiveRequest& request) { submit(request, true); }

  void on_eager();
  void on_stripe() { eager_streak_ = 0; }
  Status on_wanted(uint32_t cts);

 private:
  bool may_hold() const;
  void send(ReceiveRequest& request);
  void write(ReceiveRequest& request);
  void submit(ReceiveRequest& request, bool again);

  Link& link_;
  const Outbox& outbox_;
  EagerInbox& eager_;
  uint32_t next_ = 0;                  // sequence
  std::vector<ReceiveRequest*> held_;  // oldest first
  uint32_t eager_streak_ = 0;          // messages in a row that came eagerly
  uint64_t last_eager_ns_ = 0;
  uint32_t wanted_ = 0;  // CTS below this one are not held back: the sender waits for them
};

}  // namespace slime
