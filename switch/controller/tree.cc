// What a root and a leaf have in common when a tree of switches gets a job.
#include "switch/controller/tree.h"

#include "base/log.h"
#include "switch/controller/controller.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;

namespace {

// Whoever asks late still hears why it failed.
constexpr uint64_t kRememberNs = 10'000'000'000;

}  // namespace

std::string branch_list(uint32_t bits) {
  std::string text;
  for (uint32_t branch = 0; branch < 32; ++branch) {
    if ((bits >> branch & 1) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(branch);
  }
  return text;
}

Message Controller::on(const control::JoinTree& request) {
  for (const auto& [number, job] : jobs_) {
    if (job.tree == request.tree && !job.ended) return again(job, request);
  }
  Message answer = request.shards > 0 ? join_at_root(request) : join_at_leaf(request);
  if (std::holds_alternative<Refused>(answer)) counters_.jobs_refused.add();
  return answer;
}

// The answer was lost, or it is the first after the tree was complete.
Message Controller::again(const Job& job, const control::JoinTree& request) const {
  control::JobGrant grant = grant_of(job);
  if (job.tenant != request.part.tenant) {
    return Refused{Refusal::kForbidden, "a tree of this name is another tenant's"};
  }
  if (job.spec.children_are_switches) {
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

PendingTree& Controller::begin_tree(const control::JoinTree& request, uint64_t within_ns) {
  PendingTree& tree = pending_[request.tree];
  tree.terms = request;
  tree.deadline_ns = now_ns() + within_ns;
  tree.missing = static_cast<uint32_t>((uint64_t{1} << request.branches) - 1);
  return tree;
}

Refused Controller::fail_tree(PendingTree& tree, Refused why) {
  SLIME_WARN("tree %016llx of %u switches, tenant %s: %s",
             static_cast<unsigned long long>(tree.terms.tree), tree.terms.branches,
             tree.terms.part.tenant.c_str(), why.text.c_str());
  counters_.trees_failed.add();
  tree.deadline_ns = now_ns() + kRememberNs;
  tree.failed = why;
  return why;
}

void Controller::expire_trees(uint64_t looked_ns) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    PendingTree& tree = at->second;
    if (tree.deadline_ns > looked_ns) {
      ++at;
    } else if (tree.failed) {
      at = pending_.erase(at);
    } else {
      fail_tree(tree, {Refusal::kBusy, "the switch of branch " + branch_list(tree.missing) +
                                           " did not join the tree in time; look at its log, and "
                                           "at that of the lowest rank below it"});
    }
  }
}

}  // namespace slime::net
