// A leaf's part in making a job on a tree: it reserves room for the workers' part, asks its root
// until all leaves are there, and then keeps both ends of the job alive.
//
// It says what to ask the root, one question at a time (next_question), and is told what came of
// each (on_answer, on_failure); Uplink carries questions and answers. The trees and jobs that it
// asks about are in PendingTrees and Jobs; its own is only the last trouble with the root.
//
// Thread rules: one thread, the controller's.
#pragma once

#include "switch/controller/tree.h"

namespace slime::net {

class TreeLeaf {
 public:
  TreeLeaf(const ControllerOptions& options, const SwitchShape& shape, const Clock& clock,
           const Admission& admission, Jobs& jobs, PendingTrees& trees, ControlCounters& counters)
      : options_(options),
        shape_(shape),
        clock_(clock),
        admission_(admission),
        jobs_(jobs),
        trees_(trees),
        counters_(counters) {}

  // Of workers, whose tree has no job here yet: TreeWait or a refusal.
  control::Message join(const control::JoinTree& request);

  // Nothing: there is nothing to ask now. To ask is to be told of the answer or the failure.
  std::optional<control::Message> next_question();
  uint64_t next_question_ns() const;  // UINT64_MAX: nothing to ask
  void on_answer(const control::Message& asked, const control::Message& answer);
  void on_failure(const control::Message& asked, const Error& error);
  // Empty: the root answered, or was not needed yet.
  const std::string& parent_trouble() const { return parent_trouble_; }

 private:
  using Refusable = std::optional<control::Refused>;

  control::Message begin(const control::JoinTree& request);
  std::optional<control::JoinTree> next_part();
  void on_part_answer(const control::JoinTree& asked, const control::Message& answer);
  Refusable refuse_grant(const PendingTree& tree, const control::JobGrant& grant) const;
  Refusable create_job(const PendingTree& tree, const control::JobGrant& grant);
  void on_lease_answer(const control::JobRef& at_root, const control::Message& answer);

  const ControllerOptions& options_;
  const SwitchShape shape_;
  const Clock& clock_;
  const Admission& admission_;
  Jobs& jobs_;
  PendingTrees& trees_;
  ControlCounters& counters_;
  std::string parent_trouble_;
};

}  // namespace slime::net
