// A job on a tree: ranks that name different switches, the leaves of one root. The lowest rank of
// each leaf asks its leaf for the workers' part there; the leaves and their root agree on the rest.
#include <slime/log.h>

#include <algorithm>
#include <utility>

#include "collnet/session.h"

namespace slime {
namespace {

constexpr uint64_t kConnectNs = 5'000'000'000;
constexpr uint64_t kJoinNs = 15'000'000'000;  // longer than the switches wait: jobs.tree_s, and 2 s

bool agree_on(const auto& one, const auto& other) {
  return one.from == other.from && one.job == other.job && one.generation == other.generation &&
         one.token == other.token && one.slots == other.slots && one.lanes == other.lanes &&
         one.shards == other.shards;
}

}  // namespace

// Link-local addresses carry a scope that means something on the member's own host only.
Result<void> Session::find_place(std::span<const Member> members) {
  std::vector<SocketAddress> controls;
  for (const Member& member : members) {
    auto control = SocketAddress::unpack(member.control);
    if (!control) return fail(std::move(control.error()));
    control->set_scope(0);
    controls.push_back(*control);
  }
  job_.branches = branches_of(controls);
  for (uint32_t branch = 0; branch < job_.branches.size(); ++branch) {
    const auto& ranks = job_.branches[branch].ranks;
    const auto own = std::ranges::find(ranks, ring_->rank());
    if (own == ranks.end()) continue;
    job_.branch = branch;
    job_.child = static_cast<uint8_t>(own - ranks.begin());
  }
  return check_branches(job_.branches);
}

// Of the whole job, what the ranks below one's own leaf are.
control::JoinTree Session::part_of(control::CreateJob job, uint64_t tree) const {
  const Branch& own = job_.branches[job_.branch];
  control::JoinTree part{.tree = tree,
                         .contributors = ring_->size(),
                         .workers = static_cast<uint32_t>(own.ranks.size()),
                         .branches = static_cast<uint32_t>(job_.branches.size()),
                         .branch = job_.branch,
                         .shards = 0,
                         .part = std::move(job)};
  part.part.children.clear();
  for (uint32_t rail = 0; rail < members_.rails; ++rail) {
    for (const uint32_t rank : own.ranks) part.part.children.push_back(on_rail(rail)[rank]);
  }
  return part;
}

Result<control::JobGrant> Session::ask_for_part(std::span<const Member> members) {
  auto client = SwitchClient::open(control_address_, who_, kConnectNs);
  if (!client) return fail(std::move(client.error()));
  auto grant = (*client)->join_tree(part_of(wanted_job(members), tree_), kJoinNs);
  if (!grant) return grant;
  lease_.emplace(LeaseTerms{control_address_, who_, grant->job, grant->lease_ms},
                 std::move(*client), keeper_);
  return grant;
}

// The first of each branch asks, all learn what they got.
Result<void> Session::obtain_part(std::span<const Member> members, Grant* grant) {
  std::vector<Grant> grants(members.size());
  Grant& own = grants[ring_->rank()];
  Result<control::JobGrant> asked = control::JobGrant{};
  tree_ = members[0].tree;
  if (leader() == ring_->rank()) {
    const control::CreateJob wanted = wanted_job(members);
    own.slots = wanted.slots_wanted;
    own.lanes = wanted.lanes_wanted;
    const auto token = random_number<uint32_t>();
    asked = token ? ask_for_part(members) : fail(token.error());
    if (token) own.token = *token;
    if (asked) own = grant_of(*asked);
  }
  auto told =
      ring_->all_gather(std::as_writable_bytes(std::span(grants)), sizeof(Grant), deadline_ns_);
  if (!told) return told;
  Result<void> whole = check_parts(grants);
  if (!whole && fabric_.settings().switch_optional) {
    SLIME_WARN("%s: without switches, the ranks sum up for each other: %s", name_.c_str(),
               (asked ? whole.error() : asked.error()).what.c_str());
    lease_.reset();
    grant->from = Grant::From::kRanks;
    grant->token = grants[0].token;
    grant->slots = grants[0].slots;
    grant->lanes = grants[0].lanes;
    return check_grant(*grant);
  }
  if (!asked) return fail(std::move(asked.error()));
  if (!whole) return whole;
  *grant = grants[leader()];
  return check_grant(*grant);
}

// The same answer at all ranks.
Result<void> Session::check_parts(std::span<const Grant> grants) const {
  std::string who;
  bool same = true;
  for (const Branch& branch : job_.branches) {
    const uint32_t leader = branch.ranks.front();
    same = same && agree_on(grants[leader], grants[0]);
    if (grants[leader].from == Grant::From::kSwitch) continue;
    who += (who.empty() ? "" : ", ") + std::to_string(leader) + " (of the switch at " +
           branch.control.to_string() + ")";
  }
  if (!who.empty()) {
    return fail(make_error(Status::kRemote, 0,
                           "rank %s got no part of a job on a tree of %zu switches; %s",
                           who.c_str(), job_.branches.size(), kToldElsewhere));
  }
  if (same) return {};
  return fail(make_error(Status::kRemote, 0,
                         "the %zu switches of a tree granted different jobs; are all of them "
                         "leaves of the same root (parent.control)?",
                         job_.branches.size()));
}

}  // namespace slime
