// What the members of a session tell each other while it comes to be: blobs in a Ring. They come
// from other processes, perhaps of another build, so nothing in them is used unchecked.
#pragma once

#include <slime/result.h>
#include <slime/sap.h>
#include <slime/socket.h>

#include <array>
#include <span>
#include <vector>

namespace slime {

struct SessionMember {
  uint64_t tree = 0;    // rank 0's counts: the name of a job on a tree
  uint64_t advice = 0;  // digest of what a tuner tells NCCL
  uint32_t lanes = 0;   // that the path to the switch takes
  uint32_t well = 0;
  uint32_t half_bits = 0;
  uint32_t rails = 0;             // that it has
  uint32_t guesses = 0;           // 1: it knows of them (Worker::may_guess)
  SocketAddress::Wire control{};  // of the switch that it was told to use
  std::array<SocketAddress::Wire, sap::kMaxRails> addresses{};  // by rail
};

// What rank 0 got for all; on a tree, what the first rank of each leaf got for those below it.
struct SessionGrant {
  // kSought: nobody yet; in a tree, now is the time to ask all leaves.
  enum class From : uint32_t { kNobody, kSwitch, kRanks, kSought };
  SocketAddress::Wire address{};
  From from = From::kNobody;
  uint32_t shards = 1, slots = 0, lanes = 0;
  uint16_t job = 0;
  uint8_t generation = 0;
  uint8_t lost_rails = 0;  // when leaving a switch, of each rank: Worker::lost_rails
  uint32_t token = 0;      // where the ranks sum up for each other, rank 0's counts
};

// Members tell each other this version before all else: the blobs of another version have another
// size. It changes with the protocol towards the switch, too.
inline constexpr uint32_t kSessionVersion = 2;
Result<void> check_versions(std::span<const uint32_t> by_rank);

// Rail by rail, each by rank, of the rails that all have. An error names the rank whose blob cannot
// be.
struct SessionAddresses {
  uint32_t rails = 1;
  std::vector<SocketAddress> all;
};
Result<SessionAddresses> addresses_of(std::span<const SessionMember> members);

// Whether a worker can be made of it. kNobody is sound: it says that there is no job.
Result<void> check_grant(const SessionGrant& grant);

}  // namespace slime
