// The root's part in making a job on a tree: it waits for all leaves, takes the least of what they
// can, and allots number and generation.
//
// It has no state of its own: trees that wait are in PendingTrees, and what comes of them in Jobs.
// Thread rules: one thread, the controller's.
#pragma once

#include "switch/controller/tree.h"

namespace slime::net {

class TreeRoot {
 public:
  TreeRoot(const ControllerOptions& options, const SwitchShape& shape, const Admission& admission,
           Jobs& jobs, PendingTrees& trees, ControlCounters& counters)
      : options_(options),
        shape_(shape),
        admission_(admission),
        jobs_(jobs),
        trees_(trees),
        counters_(counters) {}

  // Of a leaf, whose tree has no job here yet: the grant, TreeWait or a refusal.
  control::Message join(const control::JoinTree& request);

 private:
  using Refusable = std::optional<control::Refused>;

  Refusable refuse_leaf(const control::JoinTree& request) const;
  Refusable refuse_tree(const std::string& tenant) const;
  static Refusable take_in(PendingTree& tree, const control::JoinTree& request);
  Refusable create_job(const PendingTree& tree);

  const ControllerOptions& options_;
  const SwitchShape shape_;
  const Admission& admission_;
  Jobs& jobs_;
  PendingTrees& trees_;
  ControlCounters& counters_;
};

}  // namespace slime::net
