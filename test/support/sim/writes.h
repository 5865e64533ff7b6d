// The way of works between the two ends of a channel, and how a failure cuts it off.
#pragma once

#include <cstdint>
#include <vector>

#include "test/support/sim/core.h"

namespace slime::sim {

class Failures;

// The way of a write:
//
//   posted     It is on the wire until it arrives. Where it is not confirmed, it is kSent when
//              it has left the sender's wire and the window has room for it.
//   arrived    It is in the receiver's queue. A NIC that writes by itself has put it into memory.
//   reported   By the receiver's poll(). A rail that is polled has put it into memory there.
//   confirmed  It is kSent, one latency after the report, or after the arrival where NICs confirm.
//
// A silent write is not reported, and confirmed when it is in memory. So is a write that is refused
// and has somebody who waits for its confirmation. The request of a read goes the way of a write
// without bytes, and is answered in place of its report; the answer goes the way of a write, from
// the peer's memory at that time, and its report is the kSent of the read.
//
// A write ends when neither end waits for anything more of it. Its bytes stay where the poster has
// them until it is kSent or its sender goes away; from then on `copy` has them. What becomes of a
// write whose ends are disconnected is decided by Failures.
class Writes {
 public:
  Writes(Core& core, Failures& failures) : core_(core), failures_(failures) {}
  void reset();
  void check_sources(bool on) { check_sources_ = on; }

  bool post(Endpoint& end, const Work& work);  // false: the channel has failed by it
  bool report(Endpoint& end, Done* done);      // the oldest arrival; false: it is not reported
  void handle(const Event& event, InFlightWrite& write);
  void report_again(const Event& event, Endpoint& end);
  void arrive(InFlightWrite& write);
  void confirm(InFlightWrite& write);
  void drop_arrival(Endpoint& end);  // the oldest
  // What is in memory is confirmed, or may have been. All else must not get there any more.
  void drop_undelivered(Endpoint& end);

  // nullptr: the work has no bytes, or they are not registered any more.
  const std::byte* source_of(const InFlightWrite& write);
  // Where its bytes go at the receiver. nullptr: it has no such memory.
  static std::byte* target_of(const Endpoint& receiver, const InFlightWrite& write);
  static void place(const Endpoint& receiver, const InFlightWrite& write, std::byte* target,
                    const std::byte* source, uint64_t bytes);
  bool keep_copy(InFlightWrite& write);  // false: its bytes are not registered any more
  void end_write(InFlightWrite& write);
  void end_if_done(InFlightWrite& write) {
    if (!write.in_use()) end_write(write);
  }

 private:
  InFlightWrite& begin_write(Endpoint& sender, const Endpoint& receiver, const Work& work, Leg leg);
  InFlightWrite& put_on_wire(Endpoint& end, const Endpoint& peer, const Work& work, Leg leg);
  void answer(Endpoint& end, const InFlightWrite& request);
  void refuse(Endpoint& receiver, InFlightWrite& write);
  void report_write(Endpoint& end, InFlightWrite& write);
  void release_withheld(Endpoint& sender);
  bool deliver(Endpoint& receiver, InFlightWrite& write);
  static bool is_confirmed(const Endpoint& sender, const Work& work);
  void schedule_confirmation(const Endpoint& receiver, const InFlightWrite& write);
  void repeat_later(Event::Kind kind, uint32_t ppm, const Endpoint& end, uint64_t payload);

  Core& core_;
  Failures& failures_;
  BufferPool buffers_;
  uint64_t orders_ = 0;
  bool check_sources_ = true;
};

// How rails and channels fail, and what becomes of the writes between two ends that are
// disconnected: each arrives at once or late, is torn, or is lost, by a seeded draw.
//
// A channel ends in two steps. First cut() makes both ends `disconnected`: nothing new passes, and
// the fates of their writes are decided. Then each end becomes `failed`: at once where it caused
// the end of the channel, else when a notice reaches it. After a silent death no notice comes.
class Failures {
 public:
  // Why an end of a channel failed; the sentence is made when the end gets the notice.
  enum class Reason : uint8_t { kPathDied, kPeerClosed, kPeerFenced, kWriteRefused };

  Failures(Core& core, Writes& writes) : core_(core), writes_(writes) {}

  void kill(const Rail& rail);
  void fence(Endpoint& end);
  void close(Endpoint& end);
  void refuse_write(Endpoint& receiver, const InFlightWrite& write);
  void fail_source(Endpoint& sender, const Work& work);
  void fail_locally(Endpoint& end, Error error);
  Status fail(Endpoint& end, bool abrupt, Error error);  // `error` does not name the rail yet
  void fail(Endpoint& end, Reason reason, bool abrupt);  // no effect on an end that has failed

 private:
  // Why writes on their way stop, which decides what may still become of them.
  enum class Cause : uint8_t { kDeath, kSenderClosed, kReceiverClosed, kRefused };

  void disconnect(Endpoint& end, Reason reason);
  void cut(Endpoint& a, Cause of_a, Endpoint& b, Cause of_b);
  void schedule_notice(const Endpoint& end, uint64_t at_ns, Reason reason, bool abrupt);
  void decide_fates(Endpoint& sender, Cause cause);
  void decide_on_wire(Endpoint& sender, Cause cause);
  void decide_arrived(InFlightWrite& write, Cause cause);
  void let_arrive(InFlightWrite& write, bool at_once, uint64_t extra_ns);
  void drop(InFlightWrite& write, bool may_tear);

  Core& core_;
  Writes& writes_;
  std::vector<InFlightWrite*> on_wire_;  // of decide_fates(), in the order of posting
};

}  // namespace slime::sim
