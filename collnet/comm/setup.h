// How a communicator is set up: ring, rails, a job on each switch. CollComm::connect() then tries a
// sum over each.
//
// After each step that one member may fail at alone, all learn of it (agree()). Everything here
// waits, with a deadline, and returns what it has made.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collnet/comm/ring.h"
#include "collnet/comm/switch_attachment.h"

namespace slime {

// For a first sum over UDP, and for a first answer there.
inline constexpr uint64_t kTrialTimeoutNs = 5'000'000'000;

struct SetupOptions {
  std::string name;  // of the communicator
  int device = 0;
  uint64_t advice = 0;
  CommOptions comm;
  uint64_t deadline_ns = 0;
};

struct CommParts {
  std::unique_ptr<Ring> ring;
  std::unique_ptr<CommConfig> config;
  Attachments attachments;  // each has a worker
};

Result<CommParts> set_up_members(Fabric& fabric, const SetupOptions& options, Listener& listener,
                                 std::span<const Handle> handles, uint32_t rank);

// All succeeded at `on`, or none did.
Result<void> agree(Ring& ring, const Result<void>& own, const char* on, uint64_t deadline_ns);
// Over this switch, or among the ranks.
Error no_first_sum(const SwitchAttachment& attachment);

// Steps of it -------------------------------------------------------------------------------------

struct SetupContext {
  Fabric& fabric;
  const SetupOptions& options;
  Ring& ring;
  CommConfig& config;
  Attachments& attachments;

  const Settings& settings() const { return fabric.settings(); }
  uint64_t left_ns() const {
    return options.deadline_ns - std::min(fabric.clock().now_ns(), options.deadline_ns);
  }
  // A blob of each member; the own one is filled in.
  template <typename Blob>
  Result<void> gather(std::vector<Blob>* all, size_t each = 1) const {
    return ring.all_gather(std::as_writable_bytes(std::span(*all)), each * sizeof(Blob),
                           options.deadline_ns);
  }
};

// setup_jobs.cc: a job on each switch, by attachment. Rank 0 asks for them; on a tree, the lowest
// rank of each leaf asks its leaf for the workers' part there, and the leaves and their root agree
// on the rest.
Result<std::vector<CommGrant>> obtain_jobs(const SetupContext& setup,
                                           std::span<const CommMember> members);
// setup_rails.cc: the same answer at all ranks. False: this one or others have fewer rails now.
Result<bool> all_rails_work(const SetupContext& setup);
// As many rails as all members have.
void use_rails(CommConfig* config, RankAddresses addresses);

}  // namespace slime
