// Two ends of a link over simulated rails, without a control connection: what the engine tests
// drive in virtual time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "link/setup/handshake_end.h"
#include "message/recv_comm.h"
#include "message/send_comm.h"
#include "test/support/link_parts_of.h"
#include "test/support/pairs_in_order.h"
#include "test/support/sim/sim_rail.h"

namespace slime::test {

// One host: a device with simulated rails. Each is of a NIC of its own if `caps` has a guid (and
// the settings join NICs), else they share one.
struct SimHost {
  SimHost(sim::Network& network, size_t rail_count, const RailCaps& caps, const Settings& settings,
          const std::string& name) {
    std::vector<std::unique_ptr<Rail>> owned;
    for (size_t i = 0; i < rail_count; ++i) {
      RailCaps own = caps;
      own.name = name + "." + std::to_string(i);
      if (caps.guid != 0) own.guid = caps.guid + i;
      auto rail = network.open_rail(own, sim::RailModel());
      rails.push_back(static_cast<sim::Rail*>(rail.get()));
      owned.push_back(std::move(rail));
    }
    devices = Devices::of_rails(std::move(owned), settings, network);
  }

  Device& device() const { return *devices->device(0); }

  std::vector<sim::Rail*> rails;
  std::unique_ptr<Devices> devices;
};

// Rails that write into device memory, as a NIC with GPUDirect.
inline RailCaps device_memory_caps() {
  RailCaps caps;
  caps.transport = "sim";
  caps.arrives_unpolled = caps.confirms_in_hardware = true;
  caps.memory_kinds |= static_cast<uint32_t>(MemoryKind::kCuda);
  return caps;
}

// What arrives in this host's device memory is kept back until it is flushed.
inline void require_flushes(const SimHost& host) {
  sim::RailModel model;
  model.needs_flush = true;
  for (sim::Rail* rail : host.rails) rail->configure(rail->caps(), model);
}

// The two ends of a link, not yet with an owner.
struct SimEnds {
  LinkParts active, passive;
};

// What the owners of a link have in its memory, and the words that the handshake would carry.
struct SimOwners {
  LinkMemoryBytes active, passive;
  OwnerWords words = {};
  bool lifeline = false;
  uint32_t depth = 0;  // LinkOwner::channel_depth()
};

// Aborts the test program when the simulated rails do not connect: then nothing else is testable.
inline SimEnds connect(sim::Network& network, SimHost& from, SimHost& to, uint32_t channels,
                       const SimOwners& owners) {
  const auto buffer = [&](SimHost& host, size_t owner_bytes) {
    auto made = RegisteredBuffer::make(host.device(), link_memory_bytes(owner_bytes, channels));
    if (!made) std::abort();
    return std::move(*made);
  };
  const auto pairs = pairs_in_order(channels, from.device(), to.device());
  ChannelOptions options{
      .active = true, .confirm_delivery = owners.lifeline, .first = true, .depth = owners.depth};
  ChannelSet active(from.device(), pairs, options);
  options.active = options.first = false;
  ChannelSet passive(to.device(), pairs, options);
  Side active_side, passive_side;
  SimEnds ends{{buffer(from, owners.active.inbox), buffer(from, owners.active.outbox)},
               {buffer(to, owners.passive.inbox), buffer(to, owners.passive.outbox)}};
  if (!active.open(ends.active.inbox, &active_side) ||
      !passive.open(ends.passive.inbox, &passive_side)) {
    std::abort();
  }
  for (int i = 0;; ++i) {
    const Status a = active.connect(passive_side, 0, UINT64_MAX),
                 p = passive.connect(active_side, 0, UINT64_MAX);
    if (a == Status::kOk && p == Status::kOk) break;
    if (i == 1000) std::abort();
    network.advance(1000);
  }
  const auto fill = [&](LinkParts& parts, ChannelSet& set, bool is_active, const Side& peer) {
    parts.owner_bytes = is_active ? owners.active : owners.passive;
    parts.channels = set.take();
    parts.active = is_active;
    parts.peer = is_active ? "receiver" : "sender";
    parts.words = owners.words;
    parts.channel_depth = owners.depth;
    parts.peer_inbox = {peer.inbox_address, peer.inbox_keys};
  };
  fill(ends.active, active, true, passive_side);
  fill(ends.passive, passive, false, active_side);
  return ends;
}

struct SimLink {
  std::unique_ptr<SendCommImpl> sender;
  std::unique_ptr<RecvCommImpl> receiver;
};

inline SimLink connect(sim::Network& network, SimHost& from, SimHost& to, uint32_t channels,
                       uint32_t eager_max) {
  const MessageOwner owner(eager_max);
  const OwnerWords words = MessageWords{.eager_max = eager_max}.pack();
  SimEnds ends = connect(network, from, to, channels,
                         {owner.memory_bytes(words, true, channels),
                          owner.memory_bytes(words, false, channels), words});
  return {std::make_unique<SendCommImpl>(*from.devices, from.device(), std::move(ends.active)),
          std::make_unique<RecvCommImpl>(*to.devices, to.device(), std::move(ends.passive))};
}

}  // namespace slime::test
