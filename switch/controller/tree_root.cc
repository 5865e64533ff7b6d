// The root's part in making a job on a tree: it waits for all leaves, takes the least of what they
// can, and allots number and generation.
#include <algorithm>

#include "switch/controller/controller.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;

Message Controller::join_at_root(const control::JoinTree& request) {
  if (auto refused = refuse_leaf(request)) return *refused;
  auto at = pending_.find(request.tree);
  if (at == pending_.end()) {
    if (draining_) return Refused{Refusal::kDraining, "this switch takes no new jobs"};
    if (usage().jobs >= options_.max_jobs || pending_.size() >= 2 * size_t{options_.max_jobs}) {
      return Refused{Refusal::kMemory,
                     "as many jobs as this switch may have (jobs.max) are there, or begin"};
    }
    if (auto refused = refuse_tree(request.part.tenant)) return *refused;
    begin_tree(request, options_.tree_ns).branches.resize(request.branches);
    at = pending_.find(request.tree);
  }
  PendingTree& tree = at->second;
  if (tree.failed) return *tree.failed;
  if (auto refused = take_in(tree, request)) return fail_tree(tree, *refused);
  if (tree.missing != 0) return control::TreeWait{tree.missing};
  if (auto refused = create_at_root(request.tree)) return *refused;
  return on(request);  // there is a job now
}

std::optional<Refused> Controller::refuse_leaf(const control::JoinTree& request) const {
  if (options_.parent) {
    return Refused{Refusal::kShape, "this switch has a parent itself (parent.control: " +
                                        options_.parent->to_string() +
                                        "), and trees have two levels"};
  }
  if (request.shards != shape_.shards) {
    return Refused{Refusal::kShape, "the leaf has " + std::to_string(request.shards) +
                                        " shards and its root " + std::to_string(shape_.shards) +
                                        ": give both the same data.shards"};
  }
  const auto child = check_children(request.part.children, 1, shape_.address);
  return child ? std::nullopt : std::optional(child.error());
}

// Trees that begin, and those that failed and are remembered, count for their tenant: otherwise one
// tenant's could take all places.
std::optional<Refused> Controller::refuse_tree(const std::string& tenant) const {
  const TenantQuota quota = quota_of(tenant);
  const auto usage = usage_by_tenant();
  const auto own = usage.find(tenant);
  const bool full = (own == usage.end() ? 0 : own->second.jobs) >= quota.max_jobs;
  const auto trees = std::ranges::count_if(
      pending_, [&](const auto& entry) { return entry.second.terms.part.tenant == tenant; });
  if (!full && static_cast<uint64_t>(trees) < 2 * uint64_t{quota.max_jobs}) return {};
  return Refused{Refusal::kQuota, "tenant " + tenant + " has, or begins, the " +
                                      std::to_string(quota.max_jobs) +
                                      " jobs that it may have (tenants, jobs.tenant_max_jobs)"};
}

// What all must say alike, and the least of what each can.
std::optional<Refused> Controller::take_in(PendingTree& tree, const control::JoinTree& request) {
  control::CreateJob& part = tree.terms.part;
  if (request.branches != tree.terms.branches || request.contributors != tree.terms.contributors ||
      request.part.tenant != part.tenant) {
    return Refused{Refusal::kShape,
                   "the leaves of one tree ask for different numbers of switches or workers, "
                   "or for different tenants"};
  }
  TreeBranch& branch = tree.branches[request.branch];
  const SocketAddress& leaf = request.part.children[0];
  if (branch.workers != 0 && branch.leaf != leaf) {
    return Refused{Refusal::kShape, "branch " + std::to_string(request.branch) + " is " +
                                        branch.leaf.to_string() + " already, not " +
                                        leaf.to_string()};
  }
  branch = {leaf, request.workers};
  tree.missing &= ~(1u << request.branch);
  part.slots_wanted = std::min(part.slots_wanted, request.part.slots_wanted);
  part.lanes_wanted = std::min(part.lanes_wanted, request.part.lanes_wanted);
  part.slots_least = std::max(part.slots_least, request.part.slots_least);
  part.lanes_least = std::max(part.lanes_least, request.part.lanes_least);
  part.formats_wanted &= request.part.formats_wanted;
  part.formats_least |= request.part.formats_least;
  if (const uint32_t missing = part.formats_least & ~part.formats_wanted; missing != 0) {
    return Refused{Refusal::kShape, "the job needs the formats " + control::format_list(missing) +
                                        " too, and not every leaf of the tree adds them up"};
  }
  if (part.slots_least <= part.slots_wanted && part.lanes_least <= part.lanes_wanted) return {};
  return Refused{Refusal::kShape, "a switch of the tree can do " +
                                      std::to_string(part.slots_wanted) + " slots of " +
                                      std::to_string(part.lanes_wanted) + " lanes only, and " +
                                      std::to_string(part.slots_least) + " of " +
                                      std::to_string(part.lanes_least) + " are needed"};
}

// The pending tree holds a place itself, so that goes first.
std::optional<Refused> Controller::create_at_root(uint64_t name) {
  auto node = pending_.extract(name);
  PendingTree& tree = node.mapped();
  const auto failed = [&](Refused why) {
    fail_tree(tree, why);
    pending_.insert(std::move(node));
    return std::optional(std::move(why));
  };
  control::CreateJob wanted = tree.terms.part;
  uint32_t workers = 0;
  wanted.children.clear();
  for (const TreeBranch& branch : tree.branches) {
    wanted.children.push_back(branch.leaf);
    workers += branch.workers;
  }
  if (workers != tree.terms.contributors) {
    return failed({Refusal::kShape, "the leaves have " + std::to_string(workers) +
                                        " workers together and should have " +
                                        std::to_string(tree.terms.contributors)});
  }
  const auto grant = may_create(wanted);
  if (!grant) return failed(grant.error());
  const auto number = tree_numbers_.take(now_ns());
  if (!number) return failed({Refusal::kBusy, "all numbers for trees are in use"});
  auto made = job_of(wanted, *grant, *number);
  if (!made) return failed({Refusal::kInternal, made.error().what});
  Job job = std::move(*made);
  job.leaf_ids.resize(wanted.children.size());
  if (auto drawn = random_bytes(std::as_writable_bytes(std::span(job.leaf_ids))); !drawn) {
    tree_numbers_.give_back(number->job);
    return failed({Refusal::kInternal, drawn.error().what});
  }
  job.tree = name;
  job.spec.children_are_switches = true;
  job.leaf_until_ns.assign(wanted.children.size(), job.lease_until_ns);
  const Message answer = add(std::move(job));
  if (const auto* refused = std::get_if<Refused>(&answer)) return failed(*refused);
  counters_.trees_created.add();
  return {};
}

}  // namespace slime::net
