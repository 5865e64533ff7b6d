// The events of the network, and how channels are opened, connected and closed.
#include "test/support/sim/network.h"

#include <algorithm>
#include <cstring>

#include "test/support/sim/sim_rail.h"

namespace slime::sim {
namespace {

struct WireAddress {
  char magic[8];
  Name name;
  uint64_t nonce;
  char zeros[104];
};
static_assert(sizeof(WireAddress) == sizeof(ChannelAddress));
constexpr char kMagic[8] = {'s', 'l', 'i', 'm', 'e', 's', 'i', 'm'};

WireAddress address_of(const Endpoint& end) {
  WireAddress wire{};
  std::memcpy(wire.magic, kMagic, sizeof kMagic);
  wire.name = end.name;
  wire.nonce = end.nonce;
  return wire;
}

}  // namespace

std::unique_ptr<Rail> Network::open_rail(const RailCaps& caps, const RailModel& model) {
  const auto id = static_cast<Index>(rails_.size());
  random_.next();  // one for each rail: seeds that are known go on to mean the same run
  std::unique_ptr<Rail> rail(new Rail(*this, id, caps, model));
  rails_.push_back(rail.get());
  schedule_death(*rail);
  return rail;
}

void Network::forget_rail(const Rail& rail) { rails_[rail.id_] = nullptr; }

void Network::schedule_death(const Rail& rail) {
  const uint64_t at = rail.model_.dies_at_ns;
  if (at != 0 && at >= now_ns_) schedule(at, Event::Kind::kDeath, {rail.id_, rail.epoch_});
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
  while (!events_.empty() && is_stale(events_.next())) events_.pop();
  if (events_.empty()) return false;
  advance_to(std::max(events_.next_ns(), now_ns_));
  return true;
}

// What the event is for does not exist any more.
bool Network::is_stale(const Event& event) {
  if (event.is_of_write()) return writes_[event.index].generation != event.generation;
  if (event.is_of_endpoint()) return find({event.index, event.generation}) == nullptr;
  const Rail* rail = rails_[event.index];
  return rail == nullptr || rail->epoch_ != event.generation;
}

void Network::handle(const Event& event) {
  if (is_stale(event)) return;
  if (event.is_of_write()) return handle_write(event);
  if (event.is_of_endpoint()) return handle_endpoint(event);
  rails_[event.index]->kill();
}

void Network::handle_write(const Event& event) {
  InFlightWrite& write = writes_[event.index];
  if (event.kind == Event::Kind::kLeftWire) return leave_wire(write);
  if (event.kind == Event::Kind::kConfirmed) {
    // A failure may have decided it before.
    if (write.sender_waits) confirm(write);
    return;
  }
  // A failure may have made the arrival earlier or later than it was planned.
  if (write.on_wire && write.arrives_ns == event.time_ns) arrive(write);
}

void Network::handle_endpoint(const Event& event) {
  Endpoint& end = endpoints_[event.index];
  if (event.kind == Event::Kind::kNotice) {
    return learn_failure(end, static_cast<Reason>(event.payload >> 1), (event.payload & 1) != 0);
  }
  if (end.failed || end.fenced) return;
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
  outcomes_ = {};
  for (InFlightWrite& write : writes_) {
    if (write.sender_waits || write.receiver_waits) end_write(write);
  }
  for (Endpoint& end : endpoints_) {
    if (!end.open) continue;
    end.sent.clear();
    end.withheld.clear();
    end.arrivals.clear();
    end.outstanding = 0;
    end.disconnected = true;
    fail(end, true, make_error(Status::kRemote, 0, "the simulated network was reset"));
  }
  for (Rail* rail : rails_) {
    if (rail != nullptr) rail->reset();
  }
  refill_pools();
}

// In the order in which a new network would hand out, so that a seed means the same run whatever
// ran before.
void Network::refill_pools() {
  free_writes_.clear();
  for (auto i = static_cast<Index>(writes_.size()); i-- > 0;) free_writes_.push_back(i);
  free_endpoints_.clear();
  for (auto i = static_cast<Index>(endpoints_.size()); i-- > 0;) {
    if (!endpoints_[i].open) free_endpoints_.push_back(i);
  }
}

ChannelAddress Channel::address() const {
  ChannelAddress address;
  const WireAddress wire = address_of(end_);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Endpoint& Network::open_endpoint(Rail& rail, const ChannelOptions& options,
                                 RailCounters* counters) {
  if (free_endpoints_.empty()) {
    free_endpoints_.push_back(static_cast<Index>(endpoints_.size()));
    endpoints_.emplace_back().name.index = free_endpoints_.back();
  }
  Endpoint& end = endpoints_[free_endpoints_.back()];
  free_endpoints_.pop_back();
  end.rail = &rail;
  end.options = options;
  end.nonce = random_.next();
  const uint32_t retries = rail.model().connect_retries;
  end.retries_left = retries == 0 ? 0 : static_cast<uint32_t>(random_.up_to(retries));
  end.peer = {};
  end.peer_label = "sim:unknown";
  end.open = true;
  end.paired = end.connected = end.disconnected = end.failed = end.abrupt = end.failure_returned =
      end.fenced = false;
  end.outstanding = end.in_flight = 0;
  end.unreported_bytes = end.last_arrival_ns = 0;
  end.counters = counters;
  return end;
}

Endpoint* Network::find(Name name) {
  if (name.index >= endpoints_.size()) return nullptr;
  Endpoint& end = endpoints_[name.index];
  return end.open && end.name == name ? &end : nullptr;
}

Status Network::connect(Endpoint& end, const ChannelAddress& address) {
  run_due();
  if (end.connected || end.paired) {
    if (!end.connected && end.retries_left > 0) return --end.retries_left, Status::kAgain;
    end.connected = true;
    return Status::kOk;
  }
  if (end.failed) return end.error.status;
  WireAddress wire;
  std::memcpy(&wire, address.data(), sizeof wire);
  Endpoint* peer = find(wire.name);
  if (peer != nullptr && peer != &end) {
    const WireAddress known = address_of(*peer);
    if (std::memcmp(&wire, &known, sizeof wire) == 0) return connect_to(end, *peer);
  }
  return fail(end, true,
              make_error(Status::kRemote, 0,
                         "connection refused: the address names no open channel of this network"));
}

Status Network::connect_to(Endpoint& end, Endpoint& peer) {
  if (peer.peer != Name{} && peer.peer != end.name) {
    return fail(
        end, true,
        make_error(Status::kRemote, 0, "connection refused: channel %u on rail %s has another peer",
                   peer.name.index, peer.rail->caps().name.c_str()));
  }
  if (peer.options.active == end.options.active) {
    ++violations_.bad_calls;
    return fail(end, true,
                make_error(Status::kInvalid, 0, "both ends of a channel are %s",
                           end.options.active ? "active" : "passive"));
  }
  end.peer = peer.name;
  end.peer_label = "sim:" + peer.rail->caps().name + "#" + std::to_string(peer.name.index);
  for (const Rail* rail : {end.rail, peer.rail}) {
    if (!rail->dead()) continue;
    if (rail->death_ == Death::kNoticed) learn_failure(end, Reason::kPathDied, true);
    return end.failed ? end.error.status : Status::kAgain;
  }
  if (peer.peer == end.name) end.paired = peer.paired = true;
  if (!end.paired) return Status::kAgain;
  if (end.retries_left > 0) return --end.retries_left, Status::kAgain;
  end.connected = true;
  return Status::kOk;
}

void Network::close_endpoint(Endpoint& end) {
  run_due();
  if (Endpoint* peer = find(end.peer)) disconnect(end, *peer, Reason::kPeerClosed);
  resolve(end,
          Cause::kSenderClosed);  // confirmations that are under way, if the channel failed before
  while (!end.arrivals.empty()) drop_arrival(end);
  end.sent.clear();
  end.withheld.clear();
  end.open = false;
  ++end.name.generation;
  free_endpoints_.push_back(end.name.index);
}

}  // namespace slime::sim
