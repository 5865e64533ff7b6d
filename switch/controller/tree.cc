#include "switch/controller/tree.h"

#include <algorithm>

#include "base/log.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;

namespace {

constexpr uint64_t kRememberNs = 10'000'000'000;

}  // namespace

void PendingTrees::add_to(SwitchUsage* usage) const {
  for (const auto& [name, tree] : trees_) {
    if (!tree.failed) usage->add(tree.terms.part.tenant, tree.reserved.slot_bytes);
  }
}

size_t PendingTrees::count_of(const std::string& tenant) const {
  return static_cast<size_t>(std::ranges::count_if(
      trees_, [&](const auto& entry) { return entry.second.terms.part.tenant == tenant; }));
}

PendingTree* PendingTrees::find(uint64_t name) {
  const auto at = trees_.find(name);
  return at == trees_.end() ? nullptr : &at->second;
}

PendingTree& PendingTrees::begin(const control::JoinTree& request, uint64_t within_ns) {
  PendingTree& tree = trees_[request.tree];
  tree.terms = request;
  tree.deadline_ns = clock_.now_ns() + within_ns;
  tree.missing = static_cast<uint32_t>((uint64_t{1} << request.branches) - 1);
  return tree;
}

Refused PendingTrees::fail(PendingTree& tree, Refused why) {
  SLIME_WARN("tree %016llx of %u switches, tenant %s: %s",
             static_cast<unsigned long long>(tree.terms.tree), tree.terms.branches,
             tree.terms.part.tenant.c_str(), why.text.c_str());
  counters_.trees_failed.add();
  tree.deadline_ns = clock_.now_ns() + kRememberNs;
  tree.failed = why;
  return why;
}

std::optional<Refused> PendingTrees::complete(uint64_t name, const Make& make) {
  auto node = trees_.extract(name);
  auto refused = make(node.mapped());
  if (refused) {
    fail(node.mapped(), *refused);
    trees_.insert(std::move(node));
  }
  return refused;
}

void PendingTrees::expire(uint64_t now_ns) {
  for (auto at = trees_.begin(); at != trees_.end();) {
    PendingTree& tree = at->second;
    if (tree.deadline_ns > now_ns) {
      ++at;
    } else if (tree.failed) {
      at = trees_.erase(at);
    } else {
      fail(tree, {Refusal::kBusy, "the switch of branch " + control::branch_list(tree.missing) +
                                      " did not join the tree in time; look at its log, and "
                                      "at that of the lowest rank below it"});
    }
  }
}

uint64_t PendingTrees::next_expiry_ns() const {
  uint64_t next = UINT64_MAX;
  for (const auto& [name, tree] : trees_) next = std::min(next, tree.deadline_ns);
  return next;
}

SwitchUsage usage_of(const Jobs& jobs, const PendingTrees& trees) {
  SwitchUsage usage;
  jobs.add_to(&usage);
  trees.add_to(&usage);
  return usage;
}

Message grant_again(const Jobs& jobs, const Job& job, const control::JoinTree& request) {
  control::JobGrant grant = jobs.grant_of(job);
  if (job.tenant != request.part.tenant) {
    return Refused{Refusal::kForbidden, "a tree of this name is another tenant's"};
  }
  if (job.spec.children_are_switches) {  // this is the root, and leaves have shards
    const auto& leaves = job.spec.children;
    if (request.shards > 0 && request.branch < leaves.size() &&
        request.part.children[0] == leaves[request.branch]) {
      grant.job.id = job.leaf_ids[request.branch];
      return grant;
    }
  } else if (request.shards == 0 && job.spec.parent && job.spec.parent->child == request.branch) {
    return grant;
  }
  return Refused{Refusal::kShape,
                 "this switch is in that tree already, elsewhere: do all ranks below it name it by "
                 "the same address (NCCL_SLIME_SWITCH)?"};
}

}  // namespace slime::net
