// One switch's share of a session: the worker that takes a part of each operation, the job that it
// runs on, and how it gets from a switch that is lost to the ranks, and back.
//
// States:
//   on its switch       the leader (rank 0; on a tree the first rank below each leaf) has the lease
//   among the ranks     each rank is the switch of a part of the slots, and the leader seeks the
//                       switch
// All ranks are in the same state, but for the time of a move (session_move.cc).
//
// Thread rules: one thread, the session's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collnet/lease.h"
#include "collnet/reattachment.h"
#include "collnet/session_blobs.h"
#include "collnet/switches.h"
#include "collnet/udp_rails.h"
#include "collnet/worker.h"
#include "switch/core/shard.h"

namespace slime {

// What the shares of a session have in common. It outlives them.
struct Team {
  std::string name;  // of the session, for messages: "CollNet on eth0, rank 1 of 4"
  // Random, drawn by rank 0: operators see by it which jobs belong together. On a tree: the name of
  // the newest try for a job there.
  uint64_t id = 0;
  std::vector<NamedSwitch> switches;
  Credentials who;
  std::shared_ptr<Housekeeper> keeper;
  std::unique_ptr<UdpRails> port;
  SessionAddresses members;  // by the rails of `port`
  WorkerOptions job;         // what the workers of all shares are made with
  uint64_t retry_ns = 0;     // before a lost switch is first asked again; 0: never

  bool is_tree() const { return job.branches.size() > 1; }
  // Who asks the switch that this rank is below.
  uint32_t leader() const { return job.branches[job.branch].ranks.front(); }
};

// What a switch is asked for.
struct JobShape {
  uint32_t slots = 0, lanes = 0;
  uint32_t formats = sap::kKnownFormats;  // a bit each
};

class Share final : private Datagrams, private net::Outbox {
 public:
  using Grant = SessionGrant;

  Share(Team& team, uint32_t index);

  // The leader asks its switch for a job, and waits: for a connection, and for an answer. The job
  // may have less than `wanted`, but sap::kWordFormats at least.
  Result<control::JobGrant> ask(const JobShape& wanted, uint64_t timeout_ns);
  void withdraw() { lease_.reset(); }  // before the first sum
  Result<void> join(const Grant& grant, uint64_t now_ns);
  // Whether some slot is the rail's.
  bool carries(uint32_t rail) const { return rail * job_.shards < job_.slots; }
  // Asks the switch about such a slot, over that rail.
  void probe(uint32_t rail);
  // The rail of an answer; nothing if it is another packet.
  std::optional<uint32_t> probed(const sap::Header& answer) const;

  Worker& worker() { return *worker_; }
  const Worker& worker() const { return *worker_; }
  const WorkerOptions& job() const { return job_; }
  const NamedSwitch& named() const { return team_.switches[index_]; }
  ShardPorts data() const { return data_; }  // of the switch
  bool on_switch() const { return served_ == nullptr; }
  bool is_of_job(const sap::Header& header) const {
    return header.job == job_.job && header.generation == job_.generation;
  }
  std::string name() const;  // for messages
  void on_datagram(const sap::Header& header, std::span<const std::byte> datagram,
                   const SocketAddress& from, uint64_t now_ns);
  void poll(uint64_t now_ns);

  // Whether the ranks should move this share: the switch is lost, or, where `may_seek`, found
  // again.
  bool must_move(bool may_seek, uint64_t now_ns) const;
  bool is_stuck();
  // Pauses. What this rank has to tell the others.
  Result<Grant> begin_move();
  // What all have told of this share, by rank, and the epochs of all ranks' slots.
  Result<void> move(std::span<const Grant> told, std::span<const uint32_t> epochs, uint64_t now_ns);

 private:
  void send(const Destination& to, std::span<const std::byte> datagram) override;
  void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override;

  std::span<const SocketAddress> on_rail(uint32_t rail) const;
  control::CreateJob job_of(const JobShape& wanted) const;
  control::JoinTree part_of(control::CreateJob job) const;
  Result<void> be_among_ranks(std::span<const uint32_t> epochs, uint64_t now_ns);
  Result<void> leave(std::span<const Grant> told, std::span<const uint32_t> epochs,
                     uint64_t now_ns);
  Result<void> come_back(const Grant& grant, std::span<const uint32_t> epochs, uint64_t now_ns);
  void take_lease();
  void drop_lost_rails(std::span<const Grant> told);
  void seek(uint64_t now_ns);

  Team& team_;
  const uint32_t index_;         // of its switch
  std::vector<uint32_t> rails_;  // of the team's port, that reach the switch
  WorkerOptions job_;            // as the worker has it now
  ShardPorts data_;
  std::unique_ptr<Worker> worker_;
  std::optional<Lease> lease_;            // the leader's
  std::unique_ptr<net::Shard> served_;    // slots that this rank sums up for all
  std::optional<Reattachment> way_back_;  // the leader's, then
  uint32_t retries_ = 0;                  // moves from ranks to ranks, while only
  uint64_t retried_at_ = 0;               // so many bytes were done
  uint64_t pause_ns_ = 0;                 // before the switch is tried
  uint64_t arrived_ns_ = 0;               // there, last
};

}  // namespace slime
