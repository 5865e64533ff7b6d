#include "transports/sim/network.h"

#include <algorithm>

#include "transports/sim/sim_rail.h"

namespace slime::sim {

std::unique_ptr<Rail> Network::open_rail(const RailCaps& caps, const RailModel& model) {
  const auto id = static_cast<Index>(rails_.size());
  std::unique_ptr<Rail> rail(new Rail(*this, id, random_.next(), caps, model));
  rails_.push_back(rail.get());
  schedule_death(*rail);
  return rail;
}

void Network::forget_rail(const Rail& rail) { rails_[rail.id_] = nullptr; }

void Network::schedule_death(const Rail& rail) {
  const uint64_t at = rail.model_.dies_at_ns;
  if (at != 0 && at >= now_ns_) schedule(at, Event::Kind::kDeath, {rail.id_, rail.life_});
}

void Network::advance_to(uint64_t time_ns) {
  while (events_.next_ns() <= time_ns) {
    const Event event = events_.pop();
    if (event.time_ns > now_ns_) now_ns_ = event.time_ns;
    ++events_done_;
    handle(event);
  }
  if (time_ns > now_ns_) now_ns_ = time_ns;
}

bool Network::step() {
  while (!events_.empty() && is_void(events_.next())) events_.pop();
  if (events_.empty()) return false;
  advance_to(std::max(events_.next_ns(), now_ns_));
  return true;
}

// Meant for what is gone by now.
bool Network::is_void(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kLeave:
    case Event::Kind::kArrive:
    case Event::Kind::kConfirm:
      return flights_[event.index].generation != event.generation;
    case Event::Kind::kRepeatSent:
    case Event::Kind::kRepeatArrived:
    case Event::Kind::kNotice:
      return find({event.index, event.generation}) == nullptr;
    case Event::Kind::kDeath: {
      const Rail* rail = rails_[event.index];
      return rail == nullptr || rail->life_ != event.generation;
    }
  }
  return true;
}

void Network::handle(const Event& event) {
  if (is_void(event)) return;
  switch (event.kind) {
    case Event::Kind::kLeave:
    case Event::Kind::kArrive:
    case Event::Kind::kConfirm:
      return handle_flight(event);
    case Event::Kind::kRepeatSent:
    case Event::Kind::kRepeatArrived:
    case Event::Kind::kNotice:
      return handle_endpoint(event);
    case Event::Kind::kDeath:
      return rails_[event.index]->kill();
  }
}

void Network::handle_flight(const Event& event) {
  Flight& flight = flights_[event.index];
  if (event.kind == Event::Kind::kLeave) return leave(flight);
  if (event.kind == Event::Kind::kConfirm) {
    // A failure may have decided it before.
    if (flight.sender_waits) confirm(flight);
    return;
  }
  // A failure may have made the arrival earlier or later than it was planned.
  if (flight.on_wire && flight.arrives_ns == event.time_ns) arrive(flight);
}

void Network::handle_endpoint(const Event& event) {
  Endpoint& end = endpoints_[event.index];
  if (event.kind == Event::Kind::kNotice) {
    return notice(end, static_cast<Reason>(event.payload >> 1), (event.payload & 1) != 0);
  }
  if (end.noticed || end.fenced) return;
  if (event.kind == Event::Kind::kRepeatSent) return end.sent.push({event.payload, true});
  end.arrivals.push(
      {kNone, static_cast<uint32_t>(event.payload), static_cast<uint32_t>(event.payload >> 32)});
}

void Network::reset(uint64_t seed) {
  random_ = Random(seed);
  now_ns_ = 0;
  events_.clear();
  events_done_ = 0;
  orders_ = 0;
  violations_ = {};
  fates_ = {};
  for (Flight& flight : flights_) {
    if (flight.sender_waits || flight.receiver_waits) end_flight(flight);
  }
  for (Endpoint& end : endpoints_) {
    if (!end.open) continue;
    end.sent.clear();
    end.withheld.clear();
    end.arrivals.clear();
    end.outstanding = 0;
    end.cut = true;
    fail(end, true, make_error(Status::kRemote, 0, "simulated network was reset"));
  }
  for (Rail* rail : rails_) {
    if (rail != nullptr) rail->start_over();
  }
  refill_pools();
}

// In the order in which a new network would hand out, so that a seed means the same run whatever
// ran before.
void Network::refill_pools() {
  free_flights_.clear();
  for (auto i = static_cast<Index>(flights_.size()); i-- > 0;) free_flights_.push_back(i);
  free_endpoints_.clear();
  for (auto i = static_cast<Index>(endpoints_.size()); i-- > 0;) {
    if (!endpoints_[i].open) free_endpoints_.push_back(i);
  }
}

}  // namespace slime::sim
