// How rails and channels fail, and what becomes of the writes in flight.
#include <algorithm>
#include <cstring>

#include "test/support/sim/sim_rail.h"

namespace slime::sim {

uint64_t Network::latency_ns(const Endpoint& end, const Endpoint& peer) const {
  return std::max(end.rail->model().latency_ns, peer.rail->model().latency_ns);
}

void Network::kill(Rail& rail) {
  rail.dead_ = true;
  for (Endpoint& end : endpoints_) {
    Endpoint* peer = end.open ? find(end.peer) : nullptr;
    // Each pair once, from its active end.
    if (peer == nullptr || !end.paired || end.disconnected || !end.options.active) continue;
    if (end.rail != &rail && peer->rail != &rail) continue;
    end.disconnected = peer->disconnected = true;
    resolve(end, Cause::kDeath);
    resolve(*peer, Cause::kDeath);
    if (rail.death_ == Death::kSilent) continue;
    const RailModel& model = rail.model();
    const bool one_sided = random_.chance(model.one_sided_ppm);
    const Endpoint* last = random_.coin() ? &end : peer;
    for (Endpoint* each : {&end, peer}) {
      if (one_sided && each == last) continue;
      schedule_notice(*each, now_ns_ + random_.up_to(model.notice_ns), Reason::kPathDied,
                      random_.coin());
    }
  }
}

void Network::fence(Endpoint& end) {
  run_due();
  if (end.fenced) return;
  end.fenced = true;
  if (Endpoint* peer = find(end.peer)) disconnect(end, *peer, Reason::kPeerFenced);
  drop_undelivered(end);
  if (end.failed) return;
  fail(end, true, make_error(Status::kRemote, 0, "the channel was fenced at this end"));
}

// `end` was closed or fenced: its works that were kSent still arrive, the others may.
void Network::disconnect(Endpoint& end, Endpoint& peer, Reason reason) {
  if (!end.paired) return;
  if (!end.disconnected) {
    end.disconnected = peer.disconnected = true;
    resolve(end, Cause::kSenderClosed);
    resolve(peer, Cause::kReceiverClosed);
  }
  for (const Rail* rail : {end.rail, peer.rail}) {
    if (rail->dead() && rail->death_ == Death::kSilent) return;  // nobody tells the peer
  }
  const bool fenced = reason == Reason::kPeerFenced;
  schedule_notice(peer, std::max(now_ns_ + latency_ns(end, peer), end.last_arrival_ns), reason,
                  fenced && random_.coin());
}

void Network::refuse_write(Endpoint& receiver, const InFlightWrite& write) {
  const Work& work = write.work;
  Endpoint* sender = find(write.sender);
  if (!receiver.failed) {
    fail(receiver, false,
         make_error(Status::kRemote, 0,
                    "refused %u bytes that peer %s wrote to 0x%llx with key 0x%llx: no such "
                    "registered memory; nothing was written",
                    work.length, receiver.peer_label.c_str(),
                    static_cast<unsigned long long>(work.remote_address),
                    static_cast<unsigned long long>(work.remote_key)));
  }
  drop_undelivered(receiver);
  if (sender == nullptr || receiver.disconnected) return;
  receiver.disconnected = sender->disconnected = true;
  resolve(*sender, Cause::kRefused);
  resolve(receiver, Cause::kSenderClosed);
  schedule_notice(*sender, now_ns_ + latency_ns(receiver, *sender), Reason::kWriteRefused, false);
}

void Network::fail_source(Endpoint& sender, const Work& work) {
  fail_locally(sender, make_error(Status::kInvalid, 0,
                                  "the %u bytes to send at %p are not in registered memory",
                                  work.length, static_cast<const void*>(work.local)));
}

void Network::fail_locally(Endpoint& end, Error error) {
  if (!end.failed) fail(end, true, std::move(error));
  if (Endpoint* peer = find(end.peer)) disconnect(end, *peer, Reason::kPeerClosed);
}

Status Network::fail(Endpoint& end, bool abrupt, Error error) {
  end.failed = true;
  end.abrupt = abrupt;
  end.error = std::move(error);
  end.error.what = "sim rail " + end.rail->caps().name + ": " + end.error.what;
  return end.error.status;
}

void Network::schedule_notice(const Endpoint& end, uint64_t at_ns, Reason reason, bool abrupt) {
  schedule(at_ns, Event::Kind::kNotice, end.name, uint64_t(reason) << 1 | uint64_t{abrupt});
}

void Network::learn_failure(Endpoint& end, Reason reason, bool abrupt) {
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

void Network::resolve(Endpoint& sender, Cause cause) {
  sender.withheld.clear();
  if (sender.in_flight == 0) return;
  scratch_.clear();
  for (InFlightWrite& write : writes_) {
    if (write.sender != sender.name || !(write.sender_waits || write.receiver_waits)) continue;
    if (!write.on_wire) {
      resolve_arrived(write, cause);
    } else if (write.sender_waits || cause != Cause::kSenderClosed) {
      scratch_.push_back(&write);
    }
  }
  std::sort(scratch_.begin(), scratch_.end(),
            [](const InFlightWrite* a, const InFlightWrite* b) { return a->order < b->order; });
  resolve_on_wire(sender, cause);
}

// An ordered rail delivers the first so many; an unordered one any.
void Network::resolve_on_wire(Endpoint& sender, Cause cause) {
  const bool may_survive = cause == Cause::kDeath || cause == Cause::kSenderClosed;
  const bool ordered = sender.rail->caps().ordered;
  const uint64_t survivors = may_survive ? random_.up_to(scratch_.size()) : 0;
  bool at_once = cause == Cause::kDeath && random_.coin();
  uint64_t extra_ns = random_.up_to(sender.rail->model().notice_ns);
  for (size_t i = 0; i < scratch_.size(); ++i) {
    if (!ordered) {
      at_once = cause == Cause::kDeath && random_.coin();
      extra_ns = random_.up_to(sender.rail->model().notice_ns);
    }
    const bool survives = may_survive && (ordered ? i < survivors : random_.coin());
    if (survives) {
      let_arrive(*scratch_[i], at_once, extra_ns);
    } else {
      drop(*scratch_[i], may_survive && (!ordered || i == survivors) && random_.coin());
    }
  }
}

void Network::let_arrive(InFlightWrite& write, bool at_once, uint64_t extra_ns) {
  if (!keep_copy(write)) return drop(write, false);
  write.sender_waits = write.counted = false;
  if (at_once) {
    ++outcomes_.delivered;
    return arrive(write);
  }
  ++outcomes_.late;
  write.arrives_ns = std::max(write.arrives_ns, now_ns_) + extra_ns;
  schedule(write.arrives_ns, Event::Kind::kArrive, {write.index, write.generation});
}

void Network::drop(InFlightWrite& write, bool may_tear) {
  ++outcomes_.lost;
  Endpoint* receiver = find(write.receiver);
  const Work& work = write.work;
  // Only a NIC that writes by itself leaves a part behind: a polled rail writes in poll().
  if (may_tear && work.length > 1 && receiver != nullptr && !receiver->fenced &&
      receiver->rail->caps().arrives_unpolled) {
    std::byte* const target = receiver->rail->target_of(work);
    const std::byte* const source = target == nullptr ? nullptr : source_of(write);
    if (source != nullptr) {
      ++outcomes_.torn;
      receiver->rail->write_memory(work, target, source, 1 + random_.up_to(work.length - 2));
    }
  }
  end_write(write);
}

void Network::resolve_arrived(InFlightWrite& write, Cause cause) {
  const Endpoint* const receiver = find(write.receiver);
  const bool by_hardware =
      write.delivered && receiver != nullptr && receiver->rail->caps().confirms_in_hardware;
  const bool confirmed = write.sender_waits && (!write.receiver_waits || by_hardware);
  if (!confirmed) {  // in the receiver's queue, and stays there
    keep_copy(write);
    write.sender_waits = write.counted = false;
    return;
  }
  if (cause == Cause::kReceiverClosed || cause == Cause::kRefused)
    return;  // its confirmation is under way
  if (cause == Cause::kDeath && random_.coin()) return confirm(write);
  ++outcomes_.unconfirmed;
  write.sender_waits = write.counted = false;
  end_if_done(write);
}

}  // namespace slime::sim
