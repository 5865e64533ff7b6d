#include "collnet/session_blobs.h"

#include <algorithm>

#include "collnet/worker.h"

namespace slime {
namespace {

constexpr uint32_t kMaxSlots = 65536;  // SAP/2 counts them in 16 bits

tl::unexpected<Error> bad(const char* whose, const std::string& what) {
  return fail(make_error(Status::kRemote, 0,
                         "%s tells us of %s, which cannot be; do all ranks load the same plugin?",
                         whose, what.c_str()));
}

}  // namespace

Result<void> check_versions(std::span<const uint32_t> by_rank) {
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] == kSessionVersion) continue;
    return fail(make_error(Status::kConfig, 0,
                           "rank %zu speaks version %u of CollNet's protocols and this rank "
                           "version %u; load the same release of the plugin at all ranks",
                           rank, by_rank[rank], kSessionVersion));
  }
  return {};
}

Result<SessionAddresses> addresses_of(std::span<const SessionMember> members) {
  SessionAddresses addresses{.rails = sap::kMaxRails, .all = {}};
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const SessionMember& member = members[rank];
    const std::string whose = "rank " + std::to_string(rank);
    if (member.rails < 1 || member.rails > sap::kMaxRails) {
      return bad(whose.c_str(), std::to_string(member.rails) + " rails");
    }
    if (member.lanes < Worker::kLeastLanes) {
      return bad(whose.c_str(), "packets of " + std::to_string(member.lanes) + " lanes");
    }
    addresses.rails = std::min(addresses.rails, member.rails);
  }
  for (uint32_t rail = 0; rail < addresses.rails; ++rail) {
    for (size_t rank = 0; rank < members.size(); ++rank) {
      const std::string whose = "rank " + std::to_string(rank);
      auto address = SocketAddress::unpack(members[rank].addresses[rail]);
      if (!address) return bad(whose.c_str(), "an address that is none");
      if (address->port() == 0 || address->is_any()) {
        return bad(whose.c_str(), "the address " + address->to_string());
      }
      addresses.all.push_back(*address);
    }
  }
  return addresses;
}

Result<void> check_grant(const SessionGrant& grant) {
  using From = SessionGrant::From;
  if (grant.from == From::kNobody) return {};
  if (grant.from != From::kSwitch && grant.from != From::kRanks) {
    return bad("rank 0", "a job from nowhere");
  }
  if (grant.slots < 1 || grant.slots > kMaxSlots) {
    return bad("rank 0", "a job of " + std::to_string(grant.slots) + " slots");
  }
  if (grant.lanes < Worker::kLeastLanes || grant.lanes > sap::kMaxLanes) {
    return bad("rank 0", "packets of " + std::to_string(grant.lanes) + " lanes");
  }
  if (grant.from == From::kRanks) return {};
  const auto address = SocketAddress::unpack(grant.address);
  if (!address) return bad("rank 0", "a switch at an address that is none");
  if (grant.shards < 1 || grant.shards > sap::kMaxShards || address->port() == 0 ||
      address->port() + grant.shards - 1 > UINT16_MAX) {
    return bad("rank 0", "a switch at " + address->to_string() + " with " +
                             std::to_string(grant.shards) + " shards");
  }
  return {};
}

}  // namespace slime
