#include "collnet/comm/comm_blobs.h"

#include <algorithm>

#include "collnet/worker/worker.h"

namespace slime {
namespace {

tl::unexpected<Error> bad(size_t rank, const std::string& what) {
  return fail(Status::kRemote,
              "rank %zu tells us of %s, which cannot be; do all ranks load the same plugin?", rank,
              what.c_str());
}

// What all leaves of a tree must have been granted alike.
bool agree_on(const auto& one, const auto& other) {
  return one.from == other.from && one.job == other.job && one.generation == other.generation &&
         one.token == other.token && one.slots == other.slots && one.lanes == other.lanes &&
         one.formats == other.formats && one.shards == other.shards;
}

}  // namespace

Result<void> check_versions(std::span<const uint32_t> by_rank) {
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank] == kCommVersion) continue;
    return fail(Status::kConfig,
                "rank %zu speaks version %u of CollNet's protocols and this rank version %u; load "
                "the same release of the plugin at all ranks",
                rank, by_rank[rank], kCommVersion);
  }
  return {};
}

// The rails of all are counted first: the addresses of those that some rank lacks are not read.
Result<RankAddresses> addresses_of(std::span<const CommMember> members) {
  RankAddresses addresses{.rails = sap::kMaxRails, .all = {}};
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const CommMember& member = members[rank];
    if (member.rails < 1 || member.rails > sap::kMaxRails) {
      return bad(rank, std::to_string(member.rails) + " rails");
    }
    if (member.lanes < Worker::kLeastLanes) {
      return bad(rank, "packets of " + std::to_string(member.lanes) + " lanes");
    }
    addresses.rails = std::min(addresses.rails, member.rails);
  }
  for (uint32_t rail = 0; rail < addresses.rails; ++rail) {
    for (size_t rank = 0; rank < members.size(); ++rank) {
      auto address = SocketAddress::unpack(members[rank].addresses[rail]);
      if (!address) return bad(rank, "a malformed address (" + address.error().what + ")");
      if (address->port() == 0 || address->is_any()) {
        return bad(rank, "the address " + address->to_string());
      }
      addresses.all.push_back(*address);
    }
  }
  return addresses;
}

Result<std::vector<std::vector<NamedSwitch>>> switches_of(std::span<const CommMember> members) {
  std::vector<std::vector<NamedSwitch>> by_rank;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const CommMember& member = members[rank];
    if (member.switch_count < 1 || member.switch_count > kMaxSwitches) {
      return bad(rank, std::to_string(member.switch_count) + " switches");
    }
    std::vector<NamedSwitch>& named = by_rank.emplace_back();
    for (const auto& one : std::span(member.switches).first(member.switch_count)) {
      auto control = SocketAddress::unpack(one.control);
      if (!control)
        return bad(rank, "a switch at a malformed address (" + control.error().what + ")");
      if (one.weight < 1 || one.weight > kMaxSwitchWeight) {
        return bad(rank, "a switch of weight " + std::to_string(one.weight));
      }
      control->set_scope(0);  // of a link-local address: it means something on that host only
      named.push_back({*control, one.weight});
    }
    const bool is_list = named.size() > 1 || by_rank[0].size() > 1;
    if (!is_list || named == by_rank[0]) continue;
    return fail(Status::kConfig,
                "rank %zu names other switches than rank 0, or in another order; where "
                "NCCL_SLIME_SWITCH is a list, give all ranks the same (ranks that name different "
                "leaves of a tree name one each)",
                rank);
  }
  return by_rank;
}

Result<void> check_announcement(const Announcement& announced) {
  using From = Announcement::From;
  if (announced.from == From::kNone) return {};
  if (announced.from != From::kSwitch && announced.from != From::kRanks) {
    return bad(0, "a job from nowhere");
  }
  if (announced.slots < 1 || announced.slots > sap::kMaxSlots) {
    return bad(0, "a job of " + std::to_string(announced.slots) + " slots");
  }
  if (announced.lanes < Worker::kLeastLanes || announced.lanes > sap::kMaxLanes) {
    return bad(0, "packets of " + std::to_string(announced.lanes) + " lanes");
  }
  if (!sap::suffice(announced.formats)) {
    return bad(0, "a job with the set of formats " + std::to_string(announced.formats));
  }
  if (announced.from == From::kRanks) return {};
  const auto address = SocketAddress::unpack(announced.address);
  if (!address) return bad(0, "a switch at a malformed address (" + address.error().what + ")");
  if (announced.shards < 1 || announced.shards > sap::kMaxShards || address->port() == 0 ||
      address->port() + announced.shards - 1 > UINT16_MAX) {
    return bad(0, "a switch at " + address->to_string() + " with " +
                      std::to_string(announced.shards) + " shards");
  }
  return {};
}

Result<void> check_advice(std::span<const CommMember> members) {
  for (size_t rank = 1; rank < members.size(); ++rank) {
    if (members[rank].advice == members[0].advice) continue;
    return fail(Status::kConfig,
                "the ranks 0 and %zu were told differently where to use CollNet, and would hang; "
                "give all ranks the same NCCL_SLIME_TUNER and the same NCCL_SLIME_TUNER_FILE",
                rank);
  }
  return {};
}

Result<void> verdict(const Result<void>& own, std::span<const uint8_t> succeeded, const char* on) {
  if (!own) return own;
  std::string who;
  for (uint32_t rank = 0; rank < succeeded.size(); ++rank) {
    if (succeeded[rank] == 0) who += (who.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (who.empty()) return {};
  return fail(Status::kRemote, "%s failed at rank %s, so at all; %s", on, who.c_str(),
              kCauseElsewhere);
}

Announcement announcement_of(const control::JobGrant& grant) {
  return {.address = grant.address.pack(),
          .from = Announcement::From::kSwitch,
          .slots = grant.slots,
          .lanes = grant.lanes,
          .formats = grant.formats,
          .shards = static_cast<uint16_t>(grant.shards),  // kMaxShards at most
          .job = grant.job.job,
          .generation = grant.job.generation,
          .token = grant.token};
}

// A rank without a grant comes first in the error: it is the cause where grants differ too.
Result<void> check_parts(std::span<const Branch> branches, std::span<const Announcement> grants) {
  std::string who;
  bool same = true;
  for (const Branch& branch : branches) {
    const uint32_t leader = branch.ranks.front();
    same = same && agree_on(grants[leader], grants[0]);
    if (grants[leader].from == Announcement::From::kSwitch) continue;
    who += (who.empty() ? "" : ", ") + std::to_string(leader) + " (of the switch at " +
           branch.control.to_string() + ")";
  }
  if (!who.empty()) {
    return fail(Status::kRemote, "rank %s got no part of a job on a tree of %zu switches; %s",
                who.c_str(), branches.size(), kCauseElsewhere);
  }
  if (same) return {};
  return fail(Status::kRemote,
              "the %zu switches of a tree granted different jobs; are all of them leaves of the "
              "same root (parent.control)?",
              branches.size());
}

}  // namespace slime
