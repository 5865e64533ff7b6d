// Trees of switches that are being set up, from the first request until all leaves have joined and
// the tree has a job.
//
//   workers --JoinTree--> leaf --JoinTree--> root
//           <--TreeWait--      <--TreeWait--       until the last leaf has joined
//           <--JobGrant--      <--JobGrant--       one number and generation at all of them
//
// States of a pending tree: it waits for members, until complete() makes a job of it; or it has
// failed, and is kept for a while, so that late requests are answered with the reason.
// Invariants: a waiting tree holds room at a leaf (`reserved`), and counts as a job at leaf and
// root. A failed tree holds nothing. A repeated question changes nothing.
// Thread rules: one thread, the controller's.
#pragma once

#include <functional>

#include "switch/controller/jobs.h"

namespace slime::net {

struct TreeBranch {
  SocketAddress leaf;
  uint32_t workers = 0;  // 0: has not joined
};

struct PendingTree {
  control::JoinTree terms;           // at the root: of the first; slots and lanes are the least
  std::vector<TreeBranch> branches;  // at the root
  Grant reserved;                    // at a leaf
  uint64_t ask_ns = 0;               // at a leaf: when to ask the root again
  uint32_t missing = 0;              // as far as known here: a bit each
  uint64_t deadline_ns = 0;          // then it fails; once it has, then it is forgotten
  std::optional<control::Refused> failed;
};

class PendingTrees {
 public:
  PendingTrees(const Clock& clock, ControlCounters& counters)
      : clock_(clock), counters_(counters) {}

  std::map<uint64_t, PendingTree>& all() { return trees_; }  // by name
  const std::map<uint64_t, PendingTree>& all() const { return trees_; }
  void add_to(SwitchUsage* usage) const;
  size_t count_of(const std::string& tenant) const;  // failed ones, too

  PendingTree* find(uint64_t name);
  PendingTree& begin(const control::JoinTree& request, uint64_t within_ns);
  // Logs `why` and keeps it in the tree. Returns it.
  control::Refused fail(PendingTree& tree, control::Refused why);
  // `make` turns the tree into a job. Meanwhile the tree holds no room, and afterwards it is gone.
  // If `make` refuses, the tree has failed, and the refusal is returned.
  using Make = std::function<std::optional<control::Refused>(PendingTree& tree)>;
  std::optional<control::Refused> complete(uint64_t name, const Make& make);

  void expire(uint64_t now_ns);
  uint64_t next_expiry_ns() const;  // UINT64_MAX: none

 private:
  const Clock& clock_;
  ControlCounters& counters_;
  std::map<uint64_t, PendingTree> trees_;
};

// What jobs and pending trees hold together.
SwitchUsage usage_of(const Jobs& jobs, const PendingTrees& trees);

// What the parts of the controller work on.
struct ControlState {
  ControlState(SwitchDriver& of_driver, ControllerOptions with, const Clock& of_clock)
      : driver(of_driver), options(std::move(with)), clock(of_clock) {}
  ControlState(const ControlState&) = delete;
  ControlState& operator=(const ControlState&) = delete;
  SwitchUsage usage() const { return usage_of(jobs, trees); }

  SwitchDriver& driver;
  const ControllerOptions options;  // the quotas of the start: `admission` has the present ones
  const Clock& clock;
  const SwitchShape shape = driver.shape();
  ControlCounters counters;
  Admission admission{shape, options.max_jobs, options.default_quota, options.tenants};
  Jobs jobs{driver, options, clock, counters};
  PendingTrees trees{clock, counters};
};

// The grant, for a member of the job's tree that asks once more: its answer was lost, or it could
// not be answered before the tree was complete. A refusal if it is no such member.
control::Message grant_again(const Jobs& jobs, const Job& job, const control::JoinTree& request);

// The root's part, for a leaf whose tree has no job here yet: waits for all leaves, takes the least
// of what they can, and allots number and generation (tree_root.cc). The grant, TreeWait or a
// refusal.
control::Message join_at_root(ControlState& state, const control::JoinTree& request);

}  // namespace slime::net
