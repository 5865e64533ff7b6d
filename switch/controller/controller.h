// The control plane of a switch: answers the requests of workers, operators and leaves.
//
//     request ──▶ Controller: may this caller ask so? ──▶ Admission  may there be such a job?
//                                                     ├─▶ Jobs       create, renew, fence, remove
//                                                     ├─▶ join_at_root, TreeLeaf: job on a tree
//                                                     └─▶ report_json
//
// It has no sockets: ControlServer decodes requests and sends the answers, and Uplink carries the
// questions of leaf() to its root. It has no timers: the caller of expire() gives the time.
//
// States: those of its parts (ControlState).
// Invariants: a tenant's requests reach its own jobs only; all other jobs are to it as if they did
// not exist. A refusal is an answer. A repeated request does no harm, because answers may be lost.
// Thread rules: one thread.
#pragma once

#include "switch/controller/tree_leaf.h"

namespace slime::net {

class Controller {
 public:
  Controller(SwitchDriver& driver, ControllerOptions options, const Clock& clock)
      : state_(driver, std::move(options), clock), leaf_(state_) {}
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // `request` is one (control::is_request).
  control::Message handle(const control::Message& request, const Caller& caller = {});
  // Removes the jobs whose lease was over at `now_ns`. The caller reads the time before it handles
  // the requests that have arrived, so a heartbeat that had come by `now_ns` counts.
  void expire(uint64_t now_ns);
  uint64_t next_expiry_ns() const;  // UINT64_MAX: no job
  // For jobs that are asked for from now on.
  void set_quotas(const TenantQuota& others, std::map<std::string, TenantQuota> tenants) {
    state_.admission.set_quotas(others, std::move(tenants));
  }

  TreeLeaf& leaf() { return leaf_; }
  const TreeLeaf& leaf() const { return leaf_; }

  const SwitchDriver& driver() const { return state_.driver; }
  const ControllerOptions& options() const { return state_.options; }
  const std::map<uint16_t, Job>& jobs() const { return state_.jobs.all(); }
  const std::map<uint64_t, PendingTree>& pending_trees() const { return state_.trees.all(); }
  SwitchUsage usage() const { return state_.usage(); }
  bool draining() const { return state_.admission.draining(); }
  uint64_t now_ns() const { return state_.clock.now_ns(); }
  ControlCounters& counters() { return state_.counters; }
  ControlTotals totals() const;

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

  ControlState state_;
  TreeLeaf leaf_;
  Caller caller_;  // of the request that is being handled
};

// Reports for programs: JSON (report.cc), and Prometheus' text format (metrics.cc). Both are
// bounded, because there are at most ControllerOptions::kMaxJobs jobs. Tenants' names have no
// characters that either format would have to escape.

// `counters`: also those of each job and of the data path, for which the switch is asked.
std::string report_json(const Controller& controller, bool counters);
std::string metrics_text(const Controller& controller);
inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace slime::net
