// Sends the packets of one rank where its job runs: contributions and questions about rounds.
//
// Thread rules: one thread. No I/O of its own. Nothing is allocated.
#pragma once

#include "collnet/worker/job_route.h"
#include "collnet/worker/options.h"

namespace slime {

class PacketSender {
 public:
  PacketSender(const WorkerOptions& options, Datagrams& network)
      : rank_(static_cast<uint8_t>(options.rank)),
        switch_child_(options.child),
        contributors_(options.contributors),
        network_(network),
        route_(options.route) {}

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
