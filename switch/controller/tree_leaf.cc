// A leaf's part in making a job on a tree: it keeps room for the workers' part, asks its root until
// all leaves are there, and then keeps both ends of the job alive.

#include <algorithm>

#include "base/log.h"
#include "switch/controller/controller.h"
#include "switch/core/slots.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;
using control::State;

namespace {

constexpr uint64_t kAskNs = 20'000'000;
constexpr uint64_t kMarginNs =
    2'000'000'000;  // the root shall be the one that says what is missing
constexpr uint64_t kRetryNs = 1'000'000'000;
constexpr uint32_t kPerLease = 3;  // heartbeats: two may be lost

}  // namespace

Message Controller::join_at_leaf(const control::JoinTree& request) {
  const auto at = pending_.find(request.tree);
  if (at == pending_.end()) return begin_at_leaf(request);
  const PendingTree& tree = at->second;
  if (tree.terms.part.tenant != request.part.tenant) {
    return Refused{Refusal::kForbidden, "a tree of this name is another tenant's"};
  }
  if (tree.terms.branch != request.branch) {
    return Refused{Refusal::kShape,
                   "this switch is in that tree already, as another branch: do all ranks below it "
                   "name it by the same address (NCCL_SLIME_SWITCH)?"};
  }
  if (tree.failed) return *tree.failed;
  return control::TreeWait{tree.missing};
}

Message Controller::begin_at_leaf(const control::JoinTree& request) {
  if (!options_.parent) {
    return Refused{Refusal::kShape,
                   "the ranks name several switches, or this one by several addresses, and it has "
                   "no parent (parent.control) that could sum up what they do"};
  }
  if (pending_.size() >= 2 * size_t{options_.max_jobs}) {
    return Refused{Refusal::kMemory, "as many jobs as this switch may have (jobs.max) begin"};
  }
  control::JoinTree wanted = request;
  for (SocketAddress& child : wanted.part.children) child.set_scope(0);
  const auto grant = may_create(wanted.part);
  if (!grant) return grant.error();
  PendingTree& tree = begin_tree(wanted, options_.tree_ns + kMarginNs);
  tree.reserved = *grant;
  tree.ask_ns = now_ns();
  return control::TreeWait{tree.missing};
}

std::optional<Message> Controller::next_for_parent() {
  if (!closed_above_.empty()) {
    const control::JobRef job = closed_above_.front();
    closed_above_.pop_front();
    return control::CloseJob{job};
  }
  if (auto part = part_due()) return std::move(*part);
  for (auto& [number, job] : jobs_) {
    if (!job.above || job.above->renew_ns > now_ns()) continue;
    job.above->renew_ns = now_ns() + job.above->lease_ns / kPerLease;
    return control::Heartbeat{job.above->job};
  }
  return std::nullopt;
}

// To the root, this leaf is one child, and can do what it has room for.
std::optional<control::JoinTree> Controller::part_due() {
  if (!options_.parent) return std::nullopt;
  for (auto& [name, tree] : pending_) {
    if (tree.failed || tree.ask_ns > now_ns()) continue;
    tree.ask_ns = now_ns() + kAskNs;
    control::JoinTree part = tree.terms;
    part.shards = shape_.shards;
    part.part.children = {shape_.address};
    part.part.rails = 1;
    part.part.slots_wanted = tree.reserved.slots;
    part.part.lanes_wanted = tree.reserved.lanes;
    part.part.formats_wanted = tree.reserved.formats;
    return part;
  }
  return std::nullopt;
}

uint64_t Controller::next_for_parent_ns() const {
  if (!options_.parent) return UINT64_MAX;
  if (!closed_above_.empty()) return 0;
  uint64_t next = UINT64_MAX;
  for (const auto& [name, tree] : pending_) {
    if (!tree.failed) next = std::min(next, tree.ask_ns);
  }
  for (const auto& [number, job] : jobs_) {
    if (job.above) next = std::min(next, job.above->renew_ns);
  }
  return next;
}

void Controller::hear_parent(const Message& asked, const Message& answer) {
  parent_trouble_.clear();
  if (const auto* join = std::get_if<control::JoinTree>(&asked)) hear_of_part(*join, answer);
  if (const auto* beat = std::get_if<control::Heartbeat>(&asked)) hear_of_job(beat->job, answer);
}

void Controller::miss_parent(const Message& asked, const Error& error) {
  counters_.parent_failures.add();
  if (parent_trouble_.empty()) {
    SLIME_WARN("the parent at %s: %s", options_.parent ? options_.parent->to_string().c_str() : "?",
               error.what.c_str());
  }
  parent_trouble_ = error.what;
  if (const auto* join = std::get_if<control::JoinTree>(&asked)) {
    const auto at = pending_.find(join->tree);
    if (at == pending_.end() || at->second.failed) return;
    fail_tree(at->second, {Refusal::kBusy, "its parent, which shall be the root: " + error.what});
  }
  if (const auto* beat = std::get_if<control::Heartbeat>(&asked)) {
    for (auto& [number, job] : jobs_) {
      if (job.above && job.above->job == beat->job) job.above->renew_ns = now_ns() + kRetryNs;
    }
  }
}

void Controller::hear_of_part(const control::JoinTree& asked, const Message& answer) {
  const auto at = pending_.find(asked.tree);
  const auto* grant = std::get_if<control::JobGrant>(&answer);
  if (at == pending_.end() || at->second.failed) {
    if (grant != nullptr) close_above(grant->job);  // the workers heard that there is none
    return;
  }
  if (const auto* wait = std::get_if<control::TreeWait>(&answer))
    at->second.missing = wait->missing;
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    fail_tree(at->second, {refused->why, "the root at " + options_.parent->to_string() +
                                             " refused: " + refused->text});
  }
  if (grant != nullptr) take_part(asked.tree, *grant);
}

std::optional<std::string> Controller::refuse_grant(const PendingTree& tree,
                                                    const control::JobGrant& grant) const {
  if (grant.job.job < control::kFirstTreeJob) return "its job number is not one of trees";
  if (grant.shards != shape_.shards) return "it has another number of shards";
  if (grant.slots > tree.reserved.slots || grant.lanes > tree.reserved.lanes ||
      (grant.formats & ~tree.reserved.formats) != 0) {
    return "it grants more than was asked for";
  }
  return std::nullopt;
}

void Controller::take_part(uint64_t name, const control::JobGrant& grant) {
  auto node = pending_.extract(name);
  PendingTree& tree = node.mapped();
  const auto failed = [&](Refused why) {
    close_above(grant.job);
    fail_tree(tree, std::move(why));
    pending_.insert(std::move(node));
  };
  if (const auto why = refuse_grant(tree, grant)) {
    return failed({Refusal::kInternal, "the root's grant makes no sense: " + *why});
  }
  // The root was started again, or else it would not give away a number that is in use.
  if (const auto old = jobs_.find(grant.job.job); old != jobs_.end()) {
    old->second.above.reset();
    remove(old);
    if (jobs_.contains(grant.job.job)) {
      return failed({Refusal::kBusy, "the job of that number has not ended here yet"});
    }
  }
  tree.reserved.slots = grant.slots;
  tree.reserved.lanes = grant.lanes;
  tree.reserved.formats = grant.formats;
  tree.reserved.slot_bytes = Slots::bytes_for(grant.slots, grant.lanes);
  auto made = job_of(tree.terms.part, tree.reserved, {grant.job.job, grant.job.generation});
  if (!made) return failed({Refusal::kInternal, made.error().what});
  Job job = std::move(*made);
  job.tree = name;
  job.spec.token = grant.token;  // one for the whole tree
  job.spec.parent = Parent{grant.address, static_cast<uint8_t>(tree.terms.branch)};
  const uint64_t lease_ns = uint64_t{grant.lease_ms} * 1'000'000;
  job.above = RootLease{grant.job, lease_ns, now_ns() + lease_ns / kPerLease, now_ns() + lease_ns};
  const Message answer = add(std::move(job));
  if (const auto* refused = std::get_if<Refused>(&answer)) failed(*refused);
}

void Controller::hear_of_job(const control::JobRef& above, const Message& answer) {
  const auto* state = std::get_if<control::JobState>(&answer);
  if (state == nullptr) return;
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    Job& job = at->second;
    if (!job.above || job.above->job != above) continue;
    if (state->state == State::kAlive) {
      job.above->until_ns = now_ns() + job.above->lease_ns;
      return;
    }
    SLIME_WARN("job %u: its root says that it has ended, removed", job.ref.job);
    job.above.reset();
    return remove(at);
  }
}

// If the root never hears of it, the lease runs out there.
void Controller::close_above(const control::JobRef& job) {
  if (closed_above_.size() >= options_.max_jobs) closed_above_.pop_front();
  closed_above_.push_back(job);
}

}  // namespace slime::net
