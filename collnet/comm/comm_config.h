// What the attachments of a communicator to its switches have in common, and what they ask the
// switches for. It outlives them.
//
// Thread rules: written while the communicator is set up; later one thread, the communicator's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/housekeeper.h"
#include "collnet/comm/comm_blobs.h"
#include "collnet/comm/switches.h"
#include "collnet/udp/udp_rails.h"
#include "collnet/worker/options.h"
#include "switch/protocol/client.h"

namespace slime {

struct JobShape {
  uint32_t slots = 0, lanes = 0;
  uint32_t formats = sap::kKnownFormats;  // a bit each
};

struct CommConfig {
  std::string name;  // of the communicator, for messages: "CollNet on eth0, rank 1 of 4"
  // Random, drawn by rank 0: operators see by it which jobs belong together. On a tree: the name of
  // the newest try for a job there.
  uint64_t id = 0;
  std::vector<NamedSwitch> switches;
  Credentials who;
  std::shared_ptr<Housekeeper> keeper;
  std::unique_ptr<UdpRails> port;
  RankAddresses members;  // by the rails of `port`
  WorkerOptions job;      // what the workers of all attachments are made with
  uint64_t retry_ns = 0;  // before a lost switch is first asked again; 0: never
  bool optional = false;  // rank 0 says that the ranks may do without a switch from the start

  bool is_tree() const { return job.branches.size() > 1; }
  // The rank that asks the switch of this rank for jobs.
  uint32_t leader() const { return job.branches[job.branch].ranks.front(); }

  // A job at switch `index`, over these rails of `port`, for the ranks below that switch. On a tree
  // this is the part of one leaf; elsewhere only `part` of it counts.
  control::JoinTree job_request(uint32_t index, std::span<const uint32_t> rails,
                                const JobShape& wanted, const JobShape& least) const;
  // Asks for `wanted`, or as little as a worker can do with, and waits for the answer.
  Result<control::JobGrant> request_job(SwitchClient& client, uint32_t index,
                                        std::span<const uint32_t> rails, const JobShape& wanted,
                                        uint64_t timeout_ns) const;
};

}  // namespace slime
