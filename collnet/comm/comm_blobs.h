// What the members of a communicator exchange as blobs in a Ring: while it is set up, and when they
// leave a switch or return to one. The blobs come from other processes, perhaps of another build,
// so everything in them is checked before it is used.
#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"
#include "collnet/comm/switches.h"
#include "collnet/worker/branches.h"
#include "switch/protocol/control.h"
#include "switch/protocol/sap.h"

namespace slime {

struct CommSwitch {
  SocketAddress::Wire control{};
  uint32_t weight = 0;
};

struct CommMember {
  uint64_t id = 0;      // of the communicator, at its switches; rank 0's counts
  uint64_t advice = 0;  // digest of the tuner's choices
  uint32_t lanes = 0;   // that the path to the switch takes
  uint32_t ready = 0;   // 1: preparing for the switch succeeded
  uint32_t half_bits = 0;
  uint32_t rails = 0;    // that it has
  uint32_t guesses = 0;  // 1: its version has guess rounds (stages.h)
  uint16_t switch_count = 0;
  uint16_t switch_optional = 0;  // 1: NCCL_SLIME_SWITCH_OPTIONAL is set; rank 0's counts
  std::array<CommSwitch, kMaxSwitches> switches{};              // by NCCL_SLIME_SWITCH
  std::array<SocketAddress::Wire, sap::kMaxRails> addresses{};  // by rail
};

// What a rank announces about one switch. At set-up: the job that rank 0 got there for all; on a
// tree, the one that the first rank of each leaf got for the ranks below it. Before a move: this,
// if rank 0 has a new job, and of each rank its trouble, and how far it is.
struct Announcement {
  // kAskAll: there is no job yet; on a tree, now is the time to ask all leaves.
  enum class From : uint32_t { kNone, kSwitch, kRanks, kAskAll };
  SocketAddress::Wire address{};
  From from = From::kNone;
  uint32_t slots = 0, lanes = 0;
  uint32_t formats = 0;  // that the switch adds up: a bit each
  uint16_t shards = 1;
  uint16_t trouble = 0;  // of each rank: 1: it has trouble where the job runs
  uint16_t job = 0;
  uint8_t generation = 0;
  uint8_t lost_rails = 0;   // of each rank: Worker::lost_rails
  uint32_t token = 0;       // where the ranks sum up for each other, rank 0's counts
  uint64_t operations = 0;  // of each rank: how many it has started
};
// They are gathered as they lie in memory.
static_assert(std::has_unique_object_representations_v<CommMember> &&
              std::has_unique_object_representations_v<Announcement>);

// Members exchange this version before all other blobs, because the blobs of another version may
// have another size. It changes with the protocol towards the switch, and with the check of
// sums (switch/protocol/check.h), too: where checks differ, no rank accepts a sum.
inline constexpr uint32_t kCommVersion = 7;
Result<void> check_versions(std::span<const uint32_t> by_rank);

// Rail by rail, each by rank, of the rails that all have. An error names the rank whose blob cannot
// be.
struct RankAddresses {
  uint32_t rails = 1;
  std::vector<SocketAddress> all;
  std::span<const SocketAddress> on(uint32_t rail) const {
    const size_t ranks = all.size() / rails;
    return std::span(all).subspan(rail * ranks, ranks);
  }
};
Result<RankAddresses> addresses_of(std::span<const CommMember> members);

// By rank, what each names. Fails unless they are leaves of a tree, one named by each rank, or all
// ranks name the same.
Result<std::vector<std::vector<NamedSwitch>>> switches_of(std::span<const CommMember> members);

// Fails where the tuners of members differ in which operations use CollNet. All members have the
// same list, so all get the same answer.
Result<void> check_advice(std::span<const CommMember> members);
// Names the ranks that failed at `on`; but the own error, if there is one.
Result<void> verdict(const Result<void>& own, std::span<const uint8_t> succeeded, const char* on);

Announcement announcement_of(const control::JobGrant& grant);
// Whether a worker can be made of it. kNone is sound: there is no job.
Result<void> check_announcement(const Announcement& announced);
// Of a tree, by rank: whether the first rank of each branch got a part of one and the same job. The
// same answer at all ranks.
Result<void> check_parts(std::span<const Branch> branches, std::span<const Announcement> grants);

}  // namespace slime
