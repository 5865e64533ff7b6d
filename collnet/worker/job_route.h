// Where a job's packets go, by what they are recognised, and who sends them.
//
// Thread rules: one thread. No I/O of its own. Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "switch/protocol/sap.h"
#include "switch/protocol/slot_machine.h"

namespace slime {

// A shard of the switch, over one of our rails; or another worker, from rail 0 to rail 0.
struct Destination {
  enum class Kind : uint8_t { kShard, kRank };
  Kind kind = Kind::kShard;
  uint32_t index = 0;
  uint32_t rail = 0;
  bool operator==(const Destination&) const = default;
};

class Datagrams {
 public:
  virtual ~Datagrams() = default;
  virtual void send(const Destination& to, std::span<const std::byte> datagram) = 0;  // may lose it
};

// Changes when a job goes on elsewhere: without its switch, or on one again.
struct JobRoute {
  uint16_t job = 0;
  uint8_t generation = 0;
  uint32_t token = 0;   // of this generation
  bool direct = false;  // without a switch: rank s mod ranks serves slot s
  uint32_t shards = 1;  // slot s is served on port (that of shard 0) + s mod shards
  uint32_t rails = 1;   // local addresses towards the switch; slot s uses that of sap::rail_of

  bool names(const sap::Header& header) const {
    return header.job == job && header.generation == generation;
  }
  bool operator==(const JobRoute&) const = default;
  uint32_t rail_of(uint32_t slot) const { return sap::rail_of(slot, shards, rails); }
  Destination served_by(uint32_t slot, uint32_t ranks) const {
    if (direct) return {Destination::Kind::kRank, slot % ranks, 0};
    return {Destination::Kind::kShard, slot % shards, rail_of(slot)};
  }
  sap::Header header(sap::Type type, uint8_t child, uint32_t slot,
                     uint32_t epoch = sap::kFirstEpoch) const {
    return {.type = type,
            .job = job,
            .generation = generation,
            .child = child,
            .token = token,
            .slot = static_cast<uint16_t>(slot),
            .epoch = epoch};
  }
};

// Sends the packets of one rank where its job runs: contributions, questions about rounds, and
// answers to peers. Its state is the route, which set_route() changes when the job has moved.
class PacketSender {
 public:
  // `child`: of this rank at its switch. `contributors`: ranks of the job.
  PacketSender(const JobRoute& route, uint32_t rank, uint8_t child, uint32_t contributors,
               Datagrams& network)
      : rank_(static_cast<uint8_t>(rank)),
        switch_child_(child),
        contributors_(contributors),
        network_(network),
        route_(route) {}

  const JobRoute& route() const { return route_; }
  void set_route(const JobRoute& route) { route_ = route; }

  // The shard or rank that serves a slot.
  Destination served_by(uint32_t slot) const { return route_.served_by(slot, contributors_); }
  sap::Header contribution(uint32_t slot, uint32_t epoch) const {
    return route_.header(sap::Type::kContribution, child(), slot, epoch);
  }
  void send(const Destination& to, std::span<const std::byte> packet) { network_.send(to, packet); }
  // Which ranks have contributed to this round?
  void ask(uint32_t slot, uint32_t epoch) {
    send_header(served_by(slot), route_.header(sap::Type::kQuery, child(), slot, epoch));
  }
  // The result of this round, which that rank has kept.
  void ask_peer(uint32_t rank, uint32_t slot, uint32_t epoch) {
    sap::Header query = route_.header(sap::Type::kQuery, rank_, slot, epoch);
    query.flags = sap::flag::kFallback;
    send_header({Destination::Kind::kRank, rank, 0}, query);
  }

 private:
  // Among the children of our switch, or, without one, among the ranks.
  uint8_t child() const { return route_.direct ? rank_ : switch_child_; }
  void send_header(const Destination& to, const sap::Header& header) {
    std::byte packet[sap::kHeaderBytes];
    sap::encode(header, packet);
    network_.send(to, packet);
  }

  const uint8_t rank_;
  const uint8_t switch_child_;
  const uint32_t contributors_;
  Datagrams& network_;
  JobRoute route_;
};

}  // namespace slime
