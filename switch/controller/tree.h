// Jobs on trees of switches that come to be: what this switch knows of each until all leaves have
// joined.
//
//   workers --JoinTree--> leaf --JoinTree--> root
//           <--TreeWait--      <--TreeWait--       until the last leaf has joined
//           <--JobGrant--      <--JobGrant--       one number and generation at all of them
//
// States of a pending tree: it waits for members, until complete() makes a job of it; or it has
// failed, and is remembered for a while, so that whoever asks late hears why. Every question may be
// asked again; asking twice changes nothing.
//
// Invariants: a tree that waits holds room at a leaf (`reserved`) and a place among the jobs at
// both. A failed one holds nothing.
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
  // Returns `why`, which it also logs and remembers.
  control::Refused fail(PendingTree& tree, control::Refused why);
  // `make` turns the tree into a job; meanwhile the tree holds no room, and after that it is gone.
  // If it refuses, the tree has failed, and the refusal is returned.
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
// The grant once more, to a member of the job's tree: its answer was lost, or it is the first after
// the tree was complete. A refusal if it is no such member.
control::Message grant_again(const Jobs& jobs, const Job& job, const control::JoinTree& request);

}  // namespace slime::net
