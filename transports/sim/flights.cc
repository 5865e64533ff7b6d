// The pool of works on their way, and where their bytes are read from.
#include <cstring>

#include "transports/sim/sim_rail.h"

namespace slime::sim {
namespace {

// Eight bytes a step; only has to notice a change, not to resist one.
uint64_t hash_bytes(const std::byte* data, size_t bytes) {
  uint64_t hash = bytes * 0x9e3779b97f4a7c15;
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  if (bytes > 0) std::memcpy(&rest, data, bytes);
  return (hash ^ rest) * 0xff51afd7ed558ccd;
}

}  // namespace

Flight& Network::new_flight(Endpoint& sender, const Endpoint& receiver, const Work& work) {
  if (free_flights_.empty()) {
    free_flights_.push_back(static_cast<Index>(flights_.size()));
    flights_.emplace_back().index = free_flights_.back();
  }
  Flight& flight = flights_[free_flights_.back()];
  free_flights_.pop_back();
  flight.work = work;
  flight.sender = sender.name;
  flight.receiver = receiver.name;
  flight.order = ++orders_;
  flight.sender_waits = flight.receiver_waits = flight.on_wire = true;
  flight.landed = flight.counted = false;
  flight.source_hash = check_sources_ ? hash_bytes(work.local, work.length) : 0;
  ++sender.flights;
  return flight;
}

void Network::end_flight(Flight& flight) {
  flight.sender_waits = flight.receiver_waits = flight.on_wire = false;
  if (flight.copy != nullptr) buffers_.give_back(std::move(flight.copy), flight.work.length);
  if (Endpoint* sender = find(flight.sender)) --sender->flights;
  ++flight.generation;
  free_flights_.push_back(flight.index);
}

void Network::end_if_done(Flight& flight) {
  if (!flight.sender_waits && !flight.receiver_waits) end_flight(flight);
}

const std::byte* Network::source_of(const Flight& flight) {
  const Work& work = flight.work;
  if (flight.copy != nullptr || work.length == 0) return flight.copy.get();
  Endpoint* sender = find(flight.sender);
  const auto address = reinterpret_cast<uintptr_t>(work.local);
  if (sender == nullptr ||
      !sender->rail->memory_.allows(work.local_key, true, address, work.length)) {
    return nullptr;
  }
  if (check_sources_ && hash_bytes(work.local, work.length) != flight.source_hash) {
    ++violations_.source_changed;
  }
  return work.local;
}

bool Network::keep_copy(Flight& flight) {
  if (flight.landed || flight.copy != nullptr || flight.work.length == 0) return true;
  const std::byte* source = source_of(flight);
  if (source == nullptr) {
    ++violations_.local_access;
    return false;
  }
  flight.copy = buffers_.take(flight.work.length);
  std::memcpy(flight.copy.get(), source, flight.work.length);
  return true;
}

void Network::drop_arrival(Endpoint& end) {
  const Index index = end.arrivals.front().flight;
  end.arrivals.pop();
  if (index == kNone) return;
  flights_[index].receiver_waits = false;
  end_if_done(flights_[index]);
}

// What landed was confirmed, or may have been; what did not land must not any more.
void Network::drop_unlanded(Endpoint& end) {
  for (size_t left = end.arrivals.size(); left > 0; --left) {
    const Arrival arrival = end.arrivals.front();
    if (arrival.flight != kNone && !flights_[arrival.flight].landed) {
      ++fates_.fenced_off;
      drop_arrival(end);
      continue;
    }
    end.arrivals.pop();
    end.arrivals.push(arrival);
  }
}

}  // namespace slime::sim
