// What becomes of the works that were on their way when their channel failed.
#include <algorithm>
#include <cstring>

#include "transports/sim/sim_rail.h"

namespace slime::sim {

void Network::settle(Endpoint& sender, Cause cause) {
  sender.withheld.clear();
  if (sender.flights == 0) return;
  scratch_.clear();
  for (Flight& flight : flights_) {
    if (flight.sender != sender.name || !(flight.sender_waits || flight.receiver_waits)) continue;
    if (!flight.on_wire) {
      settle_arrived(flight, cause);
    } else if (flight.sender_waits || cause != Cause::kSenderLeft) {
      scratch_.push_back(&flight);
    }
  }
  std::sort(scratch_.begin(), scratch_.end(),
            [](const Flight* a, const Flight* b) { return a->order < b->order; });
  settle_on_wire(sender, cause);
}

// An ordered rail delivers the first so many; an unordered one any.
void Network::settle_on_wire(Endpoint& sender, Cause cause) {
  const bool may_survive = cause == Cause::kDeath || cause == Cause::kSenderLeft;
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
      survive(*scratch_[i], at_once, extra_ns);
    } else {
      lose(*scratch_[i], may_survive && (!ordered || i == survivors) && random_.coin());
    }
  }
}

void Network::survive(Flight& flight, bool at_once, uint64_t extra_ns) {
  if (!keep_copy(flight)) return lose(flight, false);
  flight.sender_waits = flight.counted = false;
  if (at_once) {
    ++fates_.delivered;
    return arrive(flight);
  }
  ++fates_.late;
  flight.arrives_ns = std::max(flight.arrives_ns, now_ns_) + extra_ns;
  schedule(flight.arrives_ns, Event::Kind::kArrive, {flight.index, flight.generation});
}

void Network::lose(Flight& flight, bool may_tear) {
  ++fates_.lost;
  Endpoint* receiver = find(flight.receiver);
  const Work& work = flight.work;
  // Only a NIC that writes by itself leaves a part behind: a polled rail writes in poll().
  if (may_tear && work.length > 1 && receiver != nullptr && !receiver->fenced &&
      receiver->rail->caps().arrives_unpolled) {
    std::byte* const target = receiver->rail->target_of(work);
    const std::byte* const source = target == nullptr ? nullptr : source_of(flight);
    if (source != nullptr) {
      ++fates_.torn;
      receiver->rail->write(work, target, source, 1 + random_.up_to(work.length - 2));
    }
  }
  end_flight(flight);
}

void Network::settle_arrived(Flight& flight, Cause cause) {
  const Endpoint* const receiver = find(flight.receiver);
  const bool by_hardware =
      flight.landed && receiver != nullptr && receiver->rail->caps().confirms_in_hardware;
  const bool confirmed = flight.sender_waits && (!flight.receiver_waits || by_hardware);
  if (!confirmed) {  // in the receiver's queue, and stays there
    keep_copy(flight);
    flight.sender_waits = flight.counted = false;
    return;
  }
  if (cause == Cause::kReceiverLeft || cause == Cause::kRefused) return;  // its word is on its way
  if (cause == Cause::kDeath && random_.coin()) return confirm(flight);
  ++fates_.unconfirmed;
  flight.sender_waits = flight.counted = false;
  end_if_done(flight);
}

}  // namespace slime::sim
