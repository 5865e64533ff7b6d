// One switch of a communicator: the worker that takes a part of each operation, the job that it
// runs on, and how it gets from a switch that is lost to the ranks, and back.
//
// States:
//   on its switch       the leader (rank 0; on a tree the first rank below each leaf) has the lease
//   among the ranks     each rank is the switch of a part of the slots (`served_`), and the leader
//                       asks the switch for a job again (`reattachment_`)
// All ranks are in the same state, but for the time of a move: begin_move() pauses the worker, and
// move() ends the pause, by what all ranks have announced (fallback.h).
//
// Thread rules: one thread, the communicator's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collnet/comm/comm_config.h"
#include "collnet/comm/lease.h"
#include "collnet/worker/worker.h"
#include "switch/core/shard.h"

namespace slime {

class SwitchAttachment final : public Datagrams, private net::Outbox {
 public:
  SwitchAttachment(CommConfig& config, uint32_t index);

  // The leader asks its switch for a job, and waits: for a connection, and for an answer. The job
  // may have less than `wanted`, but sap::kWordFormats at least.
  Result<control::JobGrant> ask(const JobShape& wanted, uint64_t timeout_ns);
  void withdraw() { lease_.reset(); }  // before the first sum
  Result<void> join(const Announcement& grant, uint64_t now_ns);

  Worker& worker() const { return *worker_; }
  const WorkerOptions& job() const { return job_; }
  const NamedSwitch& named() const { return config_.switches[index_]; }
  ShardPorts data() const { return data_; }  // of the switch
  bool on_switch() const { return served_ == nullptr; }
  std::string name() const;  // for messages
  void on_datagram(const sap::Header& header, std::span<const std::byte> datagram,
                   const SocketAddress& from, uint64_t now_ns);
  void poll(uint64_t now_ns);
  void send(const Destination& to, std::span<const std::byte> datagram) override;

  // Whether the ranks should move: the switch is lost, or, where `may_return`, there again.
  bool wants_move(bool may_return, uint64_t now_ns) const;
  // Whether moving from ranks to ranks does not help.
  bool is_stuck();
  // Pauses the worker. Returns this rank's announcement for the gather.
  Result<Announcement> begin_move();
  // `announced`: by all, by rank. `epochs`: of all ranks' slots.
  Result<void> move(std::span<const Announcement> announced, std::span<const uint32_t> epochs,
                    uint64_t now_ns);

 private:
  void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override;

  Result<void> use_switch(const Announcement& grant);
  Result<void> serve_slots(std::span<const uint32_t> epochs, uint64_t now_ns);
  Result<void> leave_switch(std::span<const Announcement> announced,
                            std::span<const uint32_t> epochs, uint64_t now_ns);
  Result<void> return_to_switch(const Announcement& grant, std::span<const uint32_t> epochs,
                                uint64_t now_ns);
  void drop_lost_rails(std::span<const Announcement> announced);
  void start_reattachment(uint64_t now_ns);

  CommConfig& config_;
  const uint32_t index_;         // of its switch
  std::vector<uint32_t> rails_;  // of the communicator's port, that reach the switch
  WorkerOptions job_;            // as the worker has it now
  ShardPorts data_;
  std::unique_ptr<Worker> worker_;
  std::optional<Lease> lease_;                // the leader's
  std::unique_ptr<net::Shard> served_;        // slots that this rank sums up for all
  std::optional<Reattachment> reattachment_;  // the leader's, among the ranks
  uint32_t retries_ = 0;                      // moves from ranks to ranks, while only
  uint64_t retried_at_ = 0;                   // so many bytes were done
  uint64_t pause_ns_ = 0;                     // before the switch is tried
  uint64_t returned_ns_ = 0;                  // to the switch, last
  uint64_t results_then_ = 0;                 // that had come
};

using Attachments = std::vector<std::unique_ptr<SwitchAttachment>>;  // by switch; on a tree, one
uint32_t lost_switches(const Attachments& attachments);
// All rails take packets from all switches.
void accept_switches(const CommConfig& config, const Attachments& attachments);
// Fails where packets of two jobs could not be distinguished.
Result<void> check_distinct(const Attachments& attachments);

}  // namespace slime
