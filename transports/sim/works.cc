// The way of a work: posted, on the wire, left, arrived, landed, reported, confirmed.
#include <algorithm>
#include <cstring>

#include "transports/sim/sim_rail.h"

namespace slime::sim {
namespace {

uint64_t cost_of(const Flight& flight) { return flight.work.length + kWorkOverheadBytes; }

bool is_confirmed(const Endpoint& sender, const Work& work) {
  return sender.options.confirm_delivery && !work.unconfirmed;
}

uint64_t pair_rate_mbps(const Rail& a, const Rail& b) {
  const uint64_t mine = a.model().rate_mbps;
  const uint64_t other = b.model().rate_mbps;
  return mine == 0 || other == 0 ? std::max(mine, other) : std::min(mine, other);
}

}  // namespace

bool Network::launch(Endpoint& end, const Work& work) {
  Rail& rail = *end.rail;
  if (work.length > rail.caps().max_message_bytes) {
    ++violations_.bad_calls;
    break_locally(end, make_error(Status::kInvalid, 0,
                                  "sim rail %s: posted %u bytes in one work, at most %llu fit",
                                  rail.caps().name.c_str(), work.length,
                                  static_cast<unsigned long long>(rail.caps().max_message_bytes)));
    return false;
  }
  const auto address = reinterpret_cast<uintptr_t>(work.local);
  if (work.length > 0 && !rail.memory_.allows(work.local_key, true, address, work.length)) {
    ++violations_.local_access;
    lose_source(end, work);
    return false;
  }
  ++end.outstanding;
  end.counters->works.add();
  end.counters->bytes_sent.add(work.length);
  const uint64_t posted = ++rail.works_posted_;
  Endpoint* peer = find(end.peer);
  if (peer != nullptr && !end.cut) {
    take_off(end, *peer, work);
  } else if (!is_confirmed(end, work)) {
    end.sent.push({work.cookie, false});  // as a kernel does whose path is dead
  }
  if (posted == rail.model().dies_after_works) {
    schedule(now_ns_, Event::Kind::kDeath, {rail.id_, rail.life_});
  }
  return true;
}

void Network::take_off(Endpoint& end, const Endpoint& peer, const Work& work) {
  Rail& rail = *end.rail;
  const uint64_t rate = pair_rate_mbps(rail, *peer.rail);
  const uint64_t bytes_ps = rate == 0 ? 0 : work.length * uint64_t{8'000'000} / rate;
  rail.wire_free_ps_ =
      std::max(rail.wire_free_ps_, now_ns_ * 1000) + bytes_ps + rail.model().wire_work_ns * 1000;
  const uint64_t left_ns = (rail.wire_free_ps_ + 999) / 1000;
  Flight& flight = new_flight(end, peer, work);
  flight.arrives_ns = plan_arrival(end, peer, left_ns);
  const Name name{flight.index, flight.generation};
  if (!is_confirmed(end, work)) schedule(left_ns, Event::Kind::kLeave, name);
  schedule(flight.arrives_ns, Event::Kind::kArrive, name);
}

uint64_t Network::plan_arrival(Endpoint& end, const Endpoint& peer, uint64_t left_ns) {
  const RailModel& model = end.rail->model();
  const bool ordered = end.rail->caps().ordered;
  uint64_t arrives_ns = left_ns + latency_ns(end, peer);
  if (!ordered && model.jitter_ns > 0) arrives_ns += random_.up_to(model.jitter_ns);
  if (random_.chance(model.delay_ppm)) arrives_ns += random_.up_to(model.delay_ns);
  if (ordered) arrives_ns = std::max(arrives_ns, end.last_arrival_ns);
  end.last_arrival_ns = std::max(arrives_ns, end.last_arrival_ns);
  return arrives_ns;
}

void Network::leave(Flight& flight) {
  Endpoint* sender = find(flight.sender);
  if (sender == nullptr || !flight.sender_waits) return;
  sender->withheld.push(flight.index);
  release_withheld(*sender);
}

void Network::release_withheld(Endpoint& sender) {
  while (!sender.withheld.empty()) {
    Flight& flight = flights_[sender.withheld.front()];
    const uint64_t unreported = sender.unreported_bytes;
    const bool fits = !flight.receiver_waits || unreported == 0 ||
                      unreported + cost_of(flight) <= sender.rail->model().window_bytes;
    if (!fits) return;
    sender.withheld.pop();
    mark_sent(sender, flight);
  }
}

void Network::mark_sent(Endpoint& sender, Flight& flight) {
  if (!keep_copy(flight)) return lose_source(sender, flight.work);
  if (flight.receiver_waits) {
    flight.counted = true;
    sender.unreported_bytes += cost_of(flight);
  }
  confirm(flight);
}

void Network::arrive(Flight& flight) {
  flight.on_wire = false;
  Endpoint* receiver = find(flight.receiver);
  const bool polled = receiver != nullptr && !receiver->rail->caps().arrives_unpolled;
  // A receiver that must be polled takes nothing more once poll() has returned the failure.
  const bool kept_out = receiver != nullptr && (receiver->fenced || (polled && receiver->told));
  fates_.fenced_off += kept_out;
  if (receiver == nullptr || kept_out || (!polled && !land(*receiver, flight))) {
    flight.receiver_waits = false;
    return end_if_done(flight);
  }
  receiver->arrivals.push({flight.index, flight.work.immediate, flight.work.length});
}

bool Network::land(Endpoint& receiver, Flight& flight) {
  const Work& work = flight.work;
  if (work.length > 0) {
    std::byte* const target = receiver.rail->target_of(work);
    if (target == nullptr) {
      ++violations_.remote_access;
      refuse(receiver, flight);
      return false;
    }
    const std::byte* source = source_of(flight);
    if (source == nullptr) {
      ++violations_.local_access;
      if (Endpoint* sender = find(flight.sender)) lose_source(*sender, work);
      return false;
    }
    receiver.rail->write(work, target, source, work.length);
  }
  flight.landed = true;
  if (flight.copy != nullptr) buffers_.give_back(std::move(flight.copy), work.length);
  if (receiver.rail->caps().confirms_in_hardware) schedule_confirmation(receiver, flight);
  return true;
}

bool Network::report(Endpoint& end, Done* done) {
  const Arrival arrival = end.arrivals.front();
  end.arrivals.pop();
  if (arrival.flight != kNone) {
    Flight& flight = flights_[arrival.flight];
    const bool landed = flight.landed || land(end, flight);
    flight.receiver_waits = false;
    if (!landed) return end_if_done(flight), false;
    reported(end, flight);
    end.counters->arrivals.add();
    end.counters->bytes_received.add(arrival.bytes);
    repeat_later(Event::Kind::kRepeatArrived, end.rail->model().repeat_arrived_ppm, end,
                 uint64_t{arrival.bytes} << 32 | arrival.immediate);
  }
  *done = {Done::Kind::kArrived, arrival.immediate, arrival.bytes, 0};
  return true;
}

void Network::reported(const Endpoint& end, Flight& flight) {
  Endpoint* sender = find(flight.sender);
  if (sender != nullptr && flight.counted) {
    sender->unreported_bytes -= cost_of(flight);
    release_withheld(*sender);
  }
  if (!end.rail->caps().confirms_in_hardware) schedule_confirmation(end, flight);
  end_if_done(flight);
}

void Network::schedule_confirmation(const Endpoint& receiver, const Flight& flight) {
  const Endpoint* const sender = find(flight.sender);
  if (sender == nullptr || !flight.sender_waits || !is_confirmed(*sender, flight.work)) return;
  schedule(now_ns_ + latency_ns(receiver, *sender), Event::Kind::kConfirm,
           {flight.index, flight.generation});
}

void Network::confirm(Flight& flight) {
  Endpoint* sender = find(flight.sender);
  flight.sender_waits = false;
  if (sender != nullptr) {
    sender->sent.push({flight.work.cookie, false});
    repeat_later(Event::Kind::kRepeatSent, sender->rail->model().repeat_sent_ppm, *sender,
                 flight.work.cookie);
  }
  end_if_done(flight);
}

void Network::repeat_later(Event::Kind kind, uint32_t ppm, const Endpoint& end, uint64_t payload) {
  if (!random_.chance(ppm)) return;
  schedule(now_ns_ + random_.up_to(end.rail->model().repeat_ns), kind, end.name, payload);
}

}  // namespace slime::sim
