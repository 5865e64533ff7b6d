#include <algorithm>

#include "test/support/sim/sim_rail.h"
#include "test/support/sim/writes.h"

namespace slime::sim {

void Failures::kill(const Rail& rail) {
  for (Endpoint& end : core_.ends) {
    Endpoint* peer = end.open ? core_.ends.find(end.peer) : nullptr;
    // Each pair once, from its active end.
    if (peer == nullptr || !end.paired || end.disconnected || !end.options.active) continue;
    if (end.rail != &rail && peer->rail != &rail) continue;
    cut(end, Cause::kDeath, *peer, Cause::kDeath);
    if (rail.silent()) continue;
    const RailModel& model = rail.model();
    const bool one_sided = core_.random.chance(model.one_sided_ppm);
    const Endpoint* last = core_.random.coin() ? &end : peer;
    for (Endpoint* each : {&end, peer}) {
      if (one_sided && each == last) continue;
      schedule_notice(*each, core_.now_ns + core_.random.up_to(model.notice_ns), Reason::kPathDied,
                      core_.random.coin());
    }
  }
}

void Failures::fence(Endpoint& end) {
  if (end.fenced) return;
  end.fenced = true;
  disconnect(end, Reason::kPeerFenced);
  writes_.drop_undelivered(end);
  if (end.failed) return;
  fail(end, true, make_error(Status::kRemote, 0, "the channel was fenced at this end"));
}

// `end` was closed or fenced: its works that were kSent still arrive, the others may.
void Failures::disconnect(Endpoint& end, Reason reason) {
  if (end.rail->model().fence_flushes) end.rail->show_device();
  Endpoint* peer = core_.ends.find(end.peer);
  if (peer == nullptr || !end.paired) return;
  if (!end.disconnected) cut(end, Cause::kSenderClosed, *peer, Cause::kReceiverClosed);
  if (end.rail->silent() || peer->rail->silent()) return;  // no notice gets through
  const uint64_t at_ns =
      std::max(core_.now_ns + latency_ns(*end.rail, *peer->rail), end.sending.last_arrival_ns);
  const bool fenced = reason == Reason::kPeerFenced;
  schedule_notice(*peer, at_ns, reason, fenced && core_.random.coin());
}

void Failures::cut(Endpoint& a, Cause of_a, Endpoint& b, Cause of_b) {
  a.disconnected = b.disconnected = true;
  decide_fates(a, of_a);
  decide_fates(b, of_b);
}

void Failures::close(Endpoint& end) {
  disconnect(end, Reason::kPeerClosed);
  decide_fates(end, Cause::kSenderClosed);  // of confirmations, if the channel failed before
}

void Failures::refuse_write(Endpoint& receiver, const InFlightWrite& write) {
  const Work& work = write.work;
  Endpoint* sender = core_.ends.find(write.sender);
  if (!receiver.failed) {
    fail(receiver, false,
         make_error(Status::kRemote, 0,
                    "refused %u bytes that peer %s wrote to 0x%llx with key 0x%llx: no such "
                    "registered memory; nothing was written",
                    work.length, receiver.peer_label.c_str(),
                    static_cast<unsigned long long>(work.remote_address),
                    static_cast<unsigned long long>(work.remote_key)));
  }
  receiver.refused = true;
  writes_.drop_undelivered(receiver);
  if (sender == nullptr || receiver.disconnected) return;
  cut(*sender, Cause::kRefused, receiver, Cause::kSenderClosed);
  schedule_notice(*sender, core_.now_ns + latency_ns(*receiver.rail, *sender->rail),
                  Reason::kWriteRefused, false);
}

void Failures::fail_source(Endpoint& sender, const Work& work) {
  fail_locally(sender, make_error(Status::kInvalid, 0,
                                  "the %u bytes to send at %p are not in registered memory",
                                  work.length, static_cast<const void*>(work.local)));
}

void Failures::fail_locally(Endpoint& end, Error error) {
  if (!end.failed) fail(end, true, std::move(error));
  disconnect(end, Reason::kPeerClosed);
}

Status Failures::fail(Endpoint& end, bool abrupt, Error error) {
  end.failed = true;
  end.abrupt = abrupt;
  end.error = std::move(error);
  end.error.what = "sim rail " + end.rail->caps().name + ": " + end.error.what;
  return end.error.status;
}

void Failures::schedule_notice(const Endpoint& end, uint64_t at_ns, Reason reason, bool abrupt) {
  core_.schedule(at_ns, Event::Kind::kNotice, end.name, uint64_t(reason) << 1 | uint64_t{abrupt});
}

void Failures::fail(Endpoint& end, Reason reason, bool abrupt) {
  if (end.failed) return;
  static constexpr const char* kSentences[] = {
      "the path died, check cable, switch and NIC",
      "the peer closed the channel",
      "the peer fenced the channel off",
      "the peer refused a write: wrong key or bounds",
  };
  fail(end, abrupt,
       make_error(Status::kRemote, 0, "channel to peer %s failed: %s", end.peer_label.c_str(),
                  kSentences[static_cast<size_t>(reason)]));
}

// Decides what becomes of the sender's writes. Those that were kSent arrive in any case after the
// sender has closed, because rail.h promises it.
void Failures::decide_fates(Endpoint& sender, Cause cause) {
  sender.sending.withheld.clear();
  if (sender.sending.in_flight == 0) return;
  on_wire_.clear();
  for (InFlightWrite& write : core_.writes) {
    if (write.sender != sender.name || !write.in_use()) continue;
    if (!write.on_wire) {
      decide_arrived(write, cause);
    } else if (write.sender_waits || write.leg != Leg::kWrite || cause != Cause::kSenderClosed) {
      on_wire_.push_back(&write);
    }
  }
  std::sort(on_wire_.begin(), on_wire_.end(),
            [](const InFlightWrite* a, const InFlightWrite* b) { return a->order < b->order; });
  decide_on_wire(sender, cause);
}

// Of the writes that are on the wire an ordered rail delivers the oldest, as many as a draw says.
// An unordered one draws for each.
void Failures::decide_on_wire(Endpoint& sender, Cause cause) {
  const bool may_survive = cause == Cause::kDeath || cause == Cause::kSenderClosed;
  const bool ordered = sender.rail->caps().ordered;
  const uint64_t survivors = may_survive ? core_.random.up_to(on_wire_.size()) : 0;
  bool at_once = cause == Cause::kDeath && core_.random.coin();
  uint64_t extra_ns = core_.random.up_to(sender.rail->model().notice_ns);
  for (size_t i = 0; i < on_wire_.size(); ++i) {
    if (!ordered) {
      at_once = cause == Cause::kDeath && core_.random.coin();
      extra_ns = core_.random.up_to(sender.rail->model().notice_ns);
    }
    const bool survives = may_survive && (ordered ? i < survivors : core_.random.coin());
    if (survives) {
      let_arrive(*on_wire_[i], at_once, extra_ns);
    } else {
      drop(*on_wire_[i], may_survive && (!ordered || i == survivors) && core_.random.coin());
    }
  }
}

void Failures::let_arrive(InFlightWrite& write, bool at_once, uint64_t extra_ns) {
  if (!writes_.keep_copy(write)) return drop(write, false);
  write.sender_waits = write.counted = false;
  if (at_once) {
    ++core_.outcomes.delivered;
    return writes_.arrive(write);
  }
  ++core_.outcomes.late;
  write.arrives_ns = std::max(write.arrives_ns, core_.now_ns) + extra_ns;
  core_.schedule(write.arrives_ns, Event::Kind::kArrive, write.name);
}

void Failures::drop(InFlightWrite& write, bool may_tear) {
  ++core_.outcomes.lost;
  Endpoint* receiver = core_.ends.find(write.receiver);
  const Work& work = write.work;
  // Only a NIC that writes by itself leaves a part behind: a polled rail writes in poll().
  if (may_tear && work.length > 1 && !write.moves_nothing() && receiver != nullptr &&
      !receiver->fenced && receiver->rail->caps().arrives_unpolled) {
    std::byte* const target = Writes::target_of(*receiver, write);
    const std::byte* const source = target == nullptr ? nullptr : writes_.source_of(write);
    if (source != nullptr) {
      ++core_.outcomes.torn;
      Writes::place(*receiver, write, target, source, 1 + core_.random.up_to(work.length - 2));
    }
  }
  writes_.end_write(write);
}

// The write has arrived. Its confirmation is on the way to the sender, if the receiver has reported
// it or its NIC confirms by itself; a death may still destroy the confirmation.
void Failures::decide_arrived(InFlightWrite& write, Cause cause) {
  const Endpoint* const receiver = core_.ends.find(write.receiver);
  const bool by_hardware =
      write.delivered && receiver != nullptr && receiver->rail->caps().confirms_in_hardware;
  const bool confirmed = write.sender_waits && (!write.receiver_waits || by_hardware);
  if (!confirmed) {  // it stays in the receiver's queue
    writes_.keep_copy(write);
    write.sender_waits = write.counted = false;
    return;
  }
  if (cause == Cause::kReceiverClosed || cause == Cause::kRefused) return;
  if (cause == Cause::kDeath && core_.random.coin()) return writes_.confirm(write);
  ++core_.outcomes.unconfirmed;
  write.sender_waits = write.counted = false;
  writes_.end_if_done(write);
}

}  // namespace slime::sim
