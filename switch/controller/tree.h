// A job on a tree of switches that comes to be: what this switch knows until all leaves have
// joined.
//
//   workers --JoinTree--> leaf --JoinTree--> root
//           <--TreeWait--      <--TreeWait--       until the last leaf has joined
//           <--JobGrant--      <--JobGrant--       one number and generation at all of them
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "switch/controller/admission.h"
#include "switch/protocol/control.h"

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

// A leaf's hold on the job at the root.
struct RootLease {
  control::JobRef job;
  uint64_t lease_ns = 0;
  uint64_t renew_ns = 0;  // when to send a heartbeat
  uint64_t until_ns = 0;
};

// "1, 3"
std::string branch_list(uint32_t bits);

}  // namespace slime::net
