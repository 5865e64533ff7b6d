// What the attachments of a communicator to its switches have in common. It outlives them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/housekeeper.h"
#include "collnet/comm/comm_blobs.h"
#include "collnet/comm/switches.h"
#include "collnet/udp/udp_rails.h"
#include "collnet/worker/options.h"
#include "switch/protocol/client.h"

namespace slime {

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

  bool is_tree() const { return job.branches.size() > 1; }
  // The rank that asks the switch of this rank for jobs.
  uint32_t leader() const { return job.branches[job.branch].ranks.front(); }
};

}  // namespace slime
