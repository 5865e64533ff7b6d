// A leaf's part in making a job on a tree: it reserves room for the workers' part, asks its root
// until all leaves are there, and then keeps both ends of the job alive.
//
// next_question() gives one question for the root at a time, and on_answer() or on_failure() takes
// its outcome. Uplink has the connection.
//
// States and invariants: those of PendingTrees and Jobs, which hold the trees and jobs. This class
// adds the last trouble with the root only.
// Thread rules: one thread, the controller's.
#pragma once

#include "switch/controller/tree.h"

namespace slime::net {

class TreeLeaf {
 public:
  explicit TreeLeaf(ControlState& state) : state_(state) {}

  // A request of workers whose tree has no job here yet. Returns TreeWait or a refusal.
  control::Message join(const control::JoinTree& request);

  // Nothing: there is nothing to ask now. The caller reports the answer or the failure.
  std::optional<control::Message> next_question();
  uint64_t next_question_ns() const;  // UINT64_MAX: nothing to ask
  void on_answer(const control::Message& asked, const control::Message& answer);
  void on_failure(const control::Message& asked, const Error& error);
  // Why the root did not answer the last question. Empty: it did, or was not asked yet.
  const std::string& parent_trouble() const { return parent_trouble_; }

 private:
  using Refusable = std::optional<control::Refused>;

  control::Message begin(const control::JoinTree& request);
  std::optional<control::JoinTree> next_part();
  void on_part_answer(const control::JoinTree& asked, const control::Message& answer);
  Refusable refuse_grant(const PendingTree& tree, const control::JobGrant& grant) const;
  Refusable create_job(const PendingTree& tree, const control::JobGrant& grant);
  void on_lease_answer(const control::JobRef& at_root, const control::Message& answer);

  ControlState& state_;
  std::string parent_trouble_;
};

}  // namespace slime::net
