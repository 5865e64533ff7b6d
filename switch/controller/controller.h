// The control plane of a switch: answers the requests of workers, operators and leaves.
//
//     request ──▶ Controller: may this caller ask so? ──▶ Admission  may there be such a job?
//                                                     ├─▶ Jobs       create, renew, fence, remove
//                                                     ├─▶ TreeRoot, TreeLeaf: a job on a tree
//                                                     └─▶ report_json
//
// No sockets: ControlServer brings requests decoded and sends the answers; Uplink carries what
// leaf() asks its root. No timers either: whoever calls expire() says what time it is.
//
// Invariants: a tenant's requests are about its own jobs, and all others are as if they were not
// there. A refusal is an answer. To ask twice does no harm, as answers may be lost.
// Thread rules: one thread.
#pragma once

#include "switch/controller/tree_leaf.h"
#include "switch/controller/tree_root.h"

namespace slime::net {

class Controller {
 public:
  Controller(SwitchDriver& driver, ControllerOptions options, const Clock& clock);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // `request` is one (control::is_request).
  control::Message handle(const control::Message& request, const Caller& caller = {});
  // Removes the jobs whose lease was over at `now_ns`. That is a time after which requests were
  // still handled, so that a heartbeat which had come by then counts.
  void expire(uint64_t now_ns);
  uint64_t next_expiry_ns() const;  // UINT64_MAX: no job
  // For jobs that are asked for from now on.
  void set_quotas(const TenantQuota& others, std::map<std::string, TenantQuota> tenants) {
    admission_.set_quotas(others, std::move(tenants));
  }

  TreeLeaf& leaf() { return leaf_; }
  const TreeLeaf& leaf() const { return leaf_; }

  const SwitchDriver& driver() const { return driver_; }
  const ControllerOptions& options() const { return options_; }
  const std::map<uint16_t, Job>& jobs() const { return jobs_.all(); }
  const std::map<uint64_t, PendingTree>& pending_trees() const { return trees_.all(); }
  SwitchUsage usage() const { return usage_of(jobs_, trees_); }
  bool draining() const { return admission_.draining(); }
  uint64_t now_ns() const { return clock_.now_ns(); }
  ControlCounters& counters() { return counters_; }
  const ControlCounters& counters() const { return counters_; }

 private:
  control::Message on(const control::CreateJob& request);
  control::Message on(const control::JoinTree& request);
  control::Message on(const control::Heartbeat& request);
  control::Message on(const control::CloseJob& request);
  control::Message on(const control::Fence& request);
  control::Message on(const control::Report& request);
  control::Message on(const control::Drain& request);
  template <typename NoRequest>
  control::Message on(const NoRequest&);
  std::optional<control::Refused> refuse_caller(const control::Message& request) const;

  SwitchDriver& driver_;
  const ControllerOptions options_;  // the quotas of the start: admission_ has the present ones
  const Clock& clock_;
  ControlCounters counters_;
  Admission admission_;
  Jobs jobs_;
  PendingTrees trees_;
  TreeRoot root_;
  TreeLeaf leaf_;
  Caller caller_;  // of the request that is being handled
};

}  // namespace slime::net
