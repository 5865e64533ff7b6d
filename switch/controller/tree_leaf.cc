#include "switch/controller/tree_leaf.h"

#include <algorithm>

#include "base/log.h"
#include "settings/times.h"
#include "switch/core/slots.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;
using control::State;

namespace {

constexpr uint64_t kAskNs = 20'000'000;
constexpr uint64_t kRetryNs = 1'000'000'000;

}  // namespace

// The first request for a tree begins it. Later ones are answered by its state, and change nothing.
Message TreeLeaf::join(const control::JoinTree& request) {
  const PendingTree* tree = state_.trees.find(request.tree);
  if (tree == nullptr) return begin(request);
  if (tree->terms.part.tenant != request.part.tenant) {
    return Refused{Refusal::kForbidden, "a tree of this name is another tenant's"};
  }
  if (tree->terms.branch != request.branch) {
    return Refused{Refusal::kShape,
                   "this switch is in that tree already, as another branch: do all ranks below it "
                   "name it by the same address (NCCL_SLIME_SWITCH)?"};
  }
  if (tree->failed) return *tree->failed;
  return control::TreeWait{tree->missing};
}

// Room is reserved before the root is asked: the root's grant names this much at most, so there is
// room for it when it comes.
Message TreeLeaf::begin(const control::JoinTree& request) {
  if (!state_.options.parent) {
    return Refused{Refusal::kShape,
                   "the ranks name several switches, or this one by several addresses, and it has "
                   "no parent (parent.control) that could sum up what they do"};
  }
  if (state_.trees.all().size() >= 2 * size_t{state_.options.max_jobs}) {
    return Refused{Refusal::kMemory, "as many jobs as this switch may have (jobs.max) begin"};
  }
  control::JoinTree wanted = request;
  for (SocketAddress& child : wanted.part.children) child.set_scope(0);
  const auto grant = state_.admission.admit(wanted.part, state_.usage());
  if (!grant) return grant.error();
  PendingTree& tree = state_.trees.begin(wanted, state_.options.tree_ns + times::kLeafMargin);
  tree.reserved = *grant;
  tree.ask_ns = state_.clock.now_ns();
  return control::TreeWait{tree.missing};
}

// Closings come first, so that the root can use the numbers of these jobs again. Then come trees,
// whose workers wait, and then heartbeats, which are due long before their lease ends.
std::optional<Message> TreeLeaf::next_question() {
  if (const auto job = state_.jobs.next_to_close()) return control::CloseJob{*job};
  if (auto part = next_part()) return std::move(*part);
  const uint64_t now = state_.clock.now_ns();
  for (const auto& [number, job] : state_.jobs.all()) {
    if (!job.root_lease || job.root_lease->renew_ns > now) continue;
    RootLease& lease = *state_.jobs.find(number, Caller{})->root_lease;
    lease.renew_ns = now + times::heartbeat_pause(lease.lease_ns);
    return control::Heartbeat{lease.job};
  }
  return std::nullopt;
}

// To the root this leaf is one child, which asks for what the leaf has reserved.
std::optional<control::JoinTree> TreeLeaf::next_part() {
  if (!state_.options.parent) return std::nullopt;
  const uint64_t now = state_.clock.now_ns();
  for (auto& [name, tree] : state_.trees.all()) {
    if (tree.failed || tree.ask_ns > now) continue;
    tree.ask_ns = now + kAskNs;
    control::JoinTree part = tree.terms;
    part.shards = state_.shape.shards;
    part.part.children = {state_.shape.address};
    part.part.rails = 1;
    part.part.slots_wanted = tree.reserved.slots;
    part.part.lanes_wanted = tree.reserved.lanes;
    part.part.formats_wanted = tree.reserved.formats;
    return part;
  }
  return std::nullopt;
}

uint64_t TreeLeaf::next_question_ns() const {
  if (!state_.options.parent) return UINT64_MAX;
  if (state_.jobs.has_to_close()) return 0;
  uint64_t next = UINT64_MAX;
  for (const auto& [name, tree] : state_.trees.all()) {
    if (!tree.failed) next = std::min(next, tree.ask_ns);
  }
  for (const auto& [number, job] : state_.jobs.all()) {
    if (job.root_lease) next = std::min(next, job.root_lease->renew_ns);
  }
  return next;
}

void TreeLeaf::on_answer(const Message& asked, const Message& answer) {
  parent_trouble_.clear();
  if (const auto* join = std::get_if<control::JoinTree>(&asked)) on_part_answer(*join, answer);
  if (const auto* beat = std::get_if<control::Heartbeat>(&asked))
    on_lease_answer(beat->job, answer);
}

// A failed question about a tree fails the tree, because its workers wait for it. A failed
// heartbeat is tried again after kRetryNs, because the lease lasts several heartbeats.
void TreeLeaf::on_failure(const Message& asked, const Error& error) {
  state_.counters.parent_failures.add();
  if (parent_trouble_.empty()) {
    SLIME_WARN("the parent at %s: %s",
               state_.options.parent ? state_.options.parent->to_string().c_str() : "?",
               error.what.c_str());
  }
  parent_trouble_ = error.what;
  if (const auto* join = std::get_if<control::JoinTree>(&asked)) {
    PendingTree* tree = state_.trees.find(join->tree);
    if (tree == nullptr || tree->failed) return;
    state_.trees.fail(*tree,
                      {Refusal::kBusy, "its parent, which shall be the root: " + error.what});
  }
  if (const auto* beat = std::get_if<control::Heartbeat>(&asked)) {
    Job* job = state_.jobs.find_root_lease(beat->job);
    if (job != nullptr) job->root_lease->renew_ns = state_.clock.now_ns() + kRetryNs;
  }
}

// A grant that cannot be used is given back to the root.
void TreeLeaf::on_part_answer(const control::JoinTree& asked, const Message& answer) {
  PendingTree* tree = state_.trees.find(asked.tree);
  const auto* grant = std::get_if<control::JobGrant>(&answer);
  if (tree == nullptr || tree->failed) {
    if (grant != nullptr)
      state_.jobs.close_at_root(grant->job);  // its workers were refused already
    return;
  }
  if (const auto* wait = std::get_if<control::TreeWait>(&answer)) tree->missing = wait->missing;
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    state_.trees.fail(*tree, {refused->why, "the root at " + state_.options.parent->to_string() +
                                                " refused: " + refused->text});
  }
  if (grant == nullptr) return;
  (void)state_.trees.complete(asked.tree, [&](const PendingTree& complete) {
    auto refused = create_job(complete, *grant);
    if (refused) state_.jobs.close_at_root(grant->job);
    return refused;
  });
}

TreeLeaf::Refusable TreeLeaf::refuse_grant(const PendingTree& tree,
                                           const control::JobGrant& grant) const {
  const bool more = grant.slots > tree.reserved.slots || grant.lanes > tree.reserved.lanes ||
                    (grant.formats & ~tree.reserved.formats) != 0;
  const char* why = grant.job.job < control::kFirstTreeJob ? "its job number is not one of trees"
                    : grant.shards != state_.shape.shards  ? "it has another number of shards"
                    : more                                 ? "it grants more than was asked for"
                                                           : nullptr;
  if (why == nullptr) return std::nullopt;
  return Refused{Refusal::kInternal, std::string("the root's grant makes no sense: ") + why};
}

// The workers' part of the tree's job, with the root's number, generation and token.
TreeLeaf::Refusable TreeLeaf::create_job(const PendingTree& tree, const control::JobGrant& grant) {
  if (auto refused = refuse_grant(tree, grant)) return refused;
  // A root gives away a number that this leaf still uses only after a restart. The job of that
  // number ended with the old root, so it is removed here, without closing it at the new one.
  if (state_.jobs.all().contains(grant.job.job)) {
    if (Job* old = state_.jobs.find(grant.job.job, Caller{})) old->root_lease.reset();
    state_.jobs.remove(grant.job.job);
    if (state_.jobs.all().contains(grant.job.job)) {
      return Refused{Refusal::kBusy, "the job of that number has not ended here yet"};
    }
  }
  const Grant own{grant.slots, grant.lanes, grant.formats,
                  Slots::bytes_for(grant.slots, grant.lanes)};
  auto job = state_.jobs.prepare(tree.terms.part, own, {grant.job.job, grant.job.generation});
  if (!job) return Refused{Refusal::kInternal, job.error().what};
  job->tree = tree.terms.tree;
  job->spec.token = grant.token;  // one for the whole tree
  job->spec.parent = Parent{grant.address, static_cast<uint8_t>(tree.terms.branch)};
  const uint64_t now = state_.clock.now_ns(), lease_ns = uint64_t{grant.lease_ms} * 1'000'000;
  job->root_lease =
      RootLease{grant.job, lease_ns, now + times::heartbeat_pause(lease_ns), now + lease_ns};
  const Message answer = state_.jobs.install(std::move(*job));
  if (const auto* refused = std::get_if<Refused>(&answer)) return *refused;
  return {};
}

// The root's answer to a heartbeat. A job that has ended at the root ends here too: no round of it
// could be complete any more.
void TreeLeaf::on_lease_answer(const control::JobRef& at_root, const Message& answer) {
  const auto* state = std::get_if<control::JobState>(&answer);
  Job* job = state != nullptr ? state_.jobs.find_root_lease(at_root) : nullptr;
  if (job == nullptr) return;
  if (state->state == State::kAlive) {
    job->root_lease->until_ns = state_.clock.now_ns() + job->root_lease->lease_ns;
    return;
  }
  SLIME_WARN("job %u: its root says that it has ended, removed", job->ref.job);
  job->root_lease.reset();
  state_.jobs.remove(job->ref.job);
}

}  // namespace slime::net
