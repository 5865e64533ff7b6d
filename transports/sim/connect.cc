// How channels find each other, and how they part.
#include <cstring>

#include "transports/sim/sim_rail.h"

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
  end.paired = end.connected = end.cut = end.noticed = end.abrupt = end.told = end.fenced = false;
  end.outstanding = end.flights = 0;
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
  if (end.noticed) return end.error.status;
  WireAddress wire;
  std::memcpy(&wire, address.data(), sizeof wire);
  Endpoint* peer = find(wire.name);
  if (peer != nullptr && peer != &end) {
    const WireAddress known = address_of(*peer);
    if (std::memcmp(&wire, &known, sizeof wire) == 0) return connect_to(end, *peer);
  }
  fail(end, true,
       make_error(Status::kRemote, 0,
                  "sim rail %s: connection refused: the address names no open channel of this "
                  "network",
                  end.rail->caps().name.c_str()));
  return end.error.status;
}

Status Network::connect_to(Endpoint& end, Endpoint& peer) {
  const char* rail_name = end.rail->caps().name.c_str();
  if (peer.peer != Name{} && peer.peer != end.name) {
    fail(end, true,
         make_error(Status::kRemote, 0,
                    "sim rail %s: connection refused: channel %u on rail %s has another peer",
                    rail_name, peer.name.index, peer.rail->caps().name.c_str()));
    return end.error.status;
  }
  if (peer.options.active == end.options.active) {
    ++violations_.bad_calls;
    fail(end, true,
         make_error(Status::kInvalid, 0, "sim rail %s: both ends of a channel are %s", rail_name,
                    end.options.active ? "active" : "passive"));
    return end.error.status;
  }
  end.peer = peer.name;
  end.peer_label = "sim:" + peer.rail->caps().name + "#" + std::to_string(peer.name.index);
  for (const Rail* rail : {end.rail, peer.rail}) {
    if (!rail->dead()) continue;
    if (rail->died_of_ == Death::kNoticed) notice(end, Reason::kPathDied, true);
    return end.noticed ? end.error.status : Status::kAgain;
  }
  if (peer.peer == end.name) end.paired = peer.paired = true;
  if (!end.paired) return Status::kAgain;
  if (end.retries_left > 0) return --end.retries_left, Status::kAgain;
  end.connected = true;
  return Status::kOk;
}

void Network::close_endpoint(Endpoint& end) {
  run_due();
  if (Endpoint* peer = find(end.peer)) part(end, *peer, Reason::kPeerClosed);
  settle(end, Cause::kSenderLeft);  // confirmations on their way, if the channel failed before
  while (!end.arrivals.empty()) drop_arrival(end);
  end.sent.clear();
  end.withheld.clear();
  end.open = false;
  ++end.name.generation;
  free_endpoints_.push_back(end.name.index);
}

}  // namespace slime::sim
