// The root's part in making a job on a tree: takes in one leaf after the other, and makes the job
// when the last one has joined. Part of tree.h.
#include <algorithm>

#include "switch/controller/tree.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;

namespace {

using Refusable = std::optional<Refused>;

// Leaves that cannot be children of this switch, whatever their tree.
Refusable refuse_leaf(const ControlState& state, const control::JoinTree& request) {
  if (state.options.parent) {
    return Refused{Refusal::kShape, "this switch has a parent itself (parent.control: " +
                                        state.options.parent->to_string() +
                                        "), and trees have two levels"};
  }
  if (request.shards != state.shape.shards) {
    return Refused{Refusal::kShape,
                   "the leaf has " + std::to_string(request.shards) + " shards and its root " +
                       std::to_string(state.shape.shards) + ": give both the same data.shards"};
  }
  const auto child = check_children(request.part.children, 1, state.shape.address);
  return child ? std::nullopt : std::optional(child.error());
}

// Pending trees count for their tenant, and so do failed ones while they are kept. Otherwise one
// tenant could take all places.
Refusable refuse_tree(const ControlState& state, const std::string& tenant) {
  if (state.admission.draining())
    return Refused{Refusal::kDraining, "this switch takes no new jobs"};
  const SwitchUsage usage = state.usage();
  if (usage.jobs >= state.options.max_jobs ||
      state.trees.all().size() >= 2 * size_t{state.options.max_jobs}) {
    return Refused{Refusal::kMemory,
                   "as many jobs as this switch may have (jobs.max) are there, or begin"};
  }
  const size_t most = state.admission.quota_of(tenant).max_jobs;
  if (usage.of(tenant).jobs < most && state.trees.count_of(tenant) < 2 * most) return {};
  return Refused{Refusal::kQuota, "tenant " + tenant + " has, or begins, the " +
                                      std::to_string(most) +
                                      " jobs that it may have (tenants, jobs.tenant_max_jobs)"};
}

// Checks that the leaf agrees with the others about the tree, and takes the least of what each leaf
// can do.
Refusable take_in(PendingTree& tree, const control::JoinTree& request) {
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

// The job of a complete tree: its children are the leaves, and it gets the least that all can do.
Refusable create_job(ControlState& state, const PendingTree& tree) {
  control::CreateJob wanted = tree.terms.part;
  uint32_t workers = 0;
  wanted.children.clear();
  for (const TreeBranch& branch : tree.branches) {
    wanted.children.push_back(branch.leaf);
    workers += branch.workers;
  }
  if (workers != tree.terms.contributors) {
    return Refused{Refusal::kShape, "the leaves have " + std::to_string(workers) +
                                        " workers together and should have " +
                                        std::to_string(tree.terms.contributors)};
  }
  const auto grant = state.admission.admit(wanted, state.usage());
  if (!grant) return grant.error();
  const auto number = state.jobs.take_tree_number();
  if (!number) return Refused{Refusal::kBusy, "all numbers for trees are in use"};
  auto job = state.jobs.prepare(wanted, *grant, *number);
  // Each leaf gets an id of its own, so that a heartbeat renews the lease of that leaf only.
  std::vector<control::JobId> ids(wanted.children.size());
  auto drawn = random_bytes(std::as_writable_bytes(std::span(ids)));
  if (!job || !drawn) {
    state.jobs.give_back_tree_number(number->job);
    return Refused{Refusal::kInternal, job ? drawn.error().what : job.error().what};
  }
  job->leaf_ids = std::move(ids);
  job->tree = tree.terms.tree;
  job->spec.children_are_switches = true;
  job->leaf_until_ns.assign(wanted.children.size(), job->lease_until_ns);
  const Message answer = state.jobs.install(std::move(*job));
  if (const auto* refused = std::get_if<Refused>(&answer)) return *refused;
  state.counters.trees_created.add();
  return {};
}

}  // namespace

// The first leaf begins the tree, each one is taken in, and the last one completes it.
Message join_at_root(ControlState& state, const control::JoinTree& request) {
  if (auto refused = refuse_leaf(state, request)) return *refused;
  PendingTree* tree = state.trees.find(request.tree);
  if (tree == nullptr) {
    if (auto refused = refuse_tree(state, request.part.tenant)) return *refused;
    tree = &state.trees.begin(request, state.options.tree_ns);
    tree->branches.resize(request.branches);
  }
  if (tree->failed) return *tree->failed;
  if (auto refused = take_in(*tree, request)) return state.trees.fail(*tree, *refused);
  if (tree->missing != 0) return control::TreeWait{tree->missing};
  const auto create = [&state](const PendingTree& complete) { return create_job(state, complete); };
  if (auto refused = state.trees.complete(request.tree, create)) return *refused;
  return grant_again(state.jobs, *state.jobs.find_tree(request.tree), request);
}

}  // namespace slime::net
