// How a communicator is set up: ring, rails, a job on each switch. CollComm::connect() then tries a
// sum over each.
//
// A step that may fail at one member alone is followed by agree(), after which it has succeeded at
// all members or has failed at all. Everything here waits, until the deadline of the set-up at
// most.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collnet/comm/ring.h"
#include "collnet/comm/switch_attachment.h"

namespace slime {

// What is known from the start, and what is made.
struct Setup {
  Devices& devices;
  const int device;
  const uint64_t advice;
  const CommOptions options;
  const Deadline deadline;
  std::unique_ptr<Ring> ring = {};
  std::unique_ptr<CommConfig> config = std::make_unique<CommConfig>();
  Attachments attachments = {};  // each has a worker at the end

  const Settings& settings() const { return devices.settings(); }
  uint64_t left_ns() const {
    return deadline.end_ns() - std::min(devices.clock().now_ns(), deadline.end_ns());
  }
  // A blob of each member; the own one is filled in.
  template <typename Blob>
  Result<void> gather(std::vector<Blob>* all, size_t each = 1) const {
    return ring->all_gather(std::as_writable_bytes(std::span(*all)), each * sizeof(Blob), deadline);
  }
};

Result<void> set_up_members(Setup& setup, Listener& listener, std::span<const Handle> handles,
                            uint32_t rank);
// All succeeded at `on`, or none did. `meanwhile` is called while this waits.
Result<void> agree(Ring& ring, const Result<void>& own, const char* on, const Deadline& deadline,
                   const Ring::Meanwhile& meanwhile = nullptr);

// setup_jobs.cc: a job on each switch, by attachment. Rank 0 asks for them; on a tree, the lowest
// rank of each leaf asks its leaf for the workers' part there, and the leaves and their root agree
// on the rest.
Result<std::vector<Announcement>> obtain_jobs(const Setup& setup,
                                              std::span<const CommMember> members);
// setup_rails.cc: the same answer at all ranks. False: this one or others have fewer rails now.
Result<bool> all_rails_work(const Setup& setup);
// As many rails as all members have.
void use_rails(CommConfig* config, RankAddresses addresses);

}  // namespace slime
