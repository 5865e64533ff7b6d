// Who may use a switch, for how long, and under which number: jobs, leases, tenants. No sockets:
// requests come decoded, answers go out as messages.
//
// Thread rules: one thread.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "switch/controller/admission.h"
#include "switch/controller/counters.h"
#include "switch/controller/keys.h"
#include "switch/controller/numbers.h"
#include "switch/controller/tree.h"
#include "switch/protocol/control.h"

namespace slime::net {

struct ControllerOptions {
  static constexpr uint32_t kMaxJobs = 512;  // so that a report fits a message

  uint32_t max_jobs = 64;
  uint16_t job_numbers = 4096;  // at least max_jobs
  uint64_t lease_ns = 30'000'000'000;
  uint64_t seed = 0;                         // different in every run of the daemon
  std::optional<SocketAddress> parent = {};  // control channel of the root above this leaf
  uint64_t tree_ns = 8'000'000'000;          // in which all leaves of a tree must join
  // Tenants that are not named below. max_jobs 0: there are no others.
  TenantQuota default_quota{.max_jobs = 64, .max_slot_bytes = UINT64_MAX};
  std::map<std::string, TenantQuota> tenants = {};
};

class Controller {
 public:
  struct Job {
    control::JobRef ref;
    std::string tenant;
    JobSpec spec;
    uint64_t tree = 0;     // the name of its tree; 0: this switch does it alone
    uint64_t session = 0;  // of the workers: this switch does a share of its operations
    uint32_t shares = 1, share = 0;
    uint64_t slot_bytes = 0;
    uint64_t created_ns = 0;
    uint64_t lease_until_ns = 0;
    bool ended = false;  // the switch failed to remove it; tried again at lease_until_ns
    std::vector<control::JobId> leaf_ids = {};  // at a root: by which each leaf knows the job
    std::vector<uint64_t> leaf_until_ns = {};
    std::optional<RootLease> above = {};  // at a leaf
  };

  Controller(SwitchDriver& driver, ControllerOptions options, const Clock& clock);

  // `request` is one (control::is_request); a refusal is an answer. A tenant's requests are about
  // its own jobs, and all others are as if they were not there.
  control::Message handle(const control::Message& request, const Caller& caller = {});
  // Removes the jobs whose lease was over at that time: when the requests that are handled were
  // looked for.
  void expire(uint64_t looked_ns);
  uint64_t next_expiry_ns() const;  // UINT64_MAX: no job

  // Of a leaf: what to ask the parent now, one thing at a time, and what came of it.
  std::optional<control::Message> next_for_parent();
  uint64_t next_for_parent_ns() const;  // UINT64_MAX: nothing to ask
  void hear_parent(const control::Message& asked, const control::Message& answer);
  void miss_parent(const control::Message& asked, const Error& error);
  // Empty: the parent answered, or was not needed yet.
  const std::string& parent_trouble() const { return parent_trouble_; }

  // For jobs that are asked for from now on.
  void set_quotas(const TenantQuota& others, std::map<std::string, TenantQuota> tenants) {
    options_.default_quota = others;
    options_.tenants = std::move(tenants);
  }

  const SwitchDriver& driver() const { return driver_; }
  const ControllerOptions& options() const { return options_; }
  const std::map<uint16_t, Job>& jobs() const { return jobs_; }
  const std::map<uint64_t, PendingTree>& pending_trees() const { return pending_; }
  Usage usage() const;
  std::map<std::string, Usage> usage_by_tenant() const;
  bool draining() const { return draining_; }
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
  Job* find(const control::JobRef& ref);
  TenantQuota quota_of(const std::string& tenant) const;
  Admission may_create(const control::CreateJob& wanted) const;
  Result<Job> job_of(const control::CreateJob& wanted, const Grant& grant, JobNumber number);
  control::Message add(Job job);
  control::JobGrant grant_of(const Job& job) const;
  void give_back(const Job& job);
  void remove(std::map<uint16_t, Job>::iterator at);
  void renew(Job& job, const control::JobId& id);
  uint64_t ends_ns(const Job& job) const;

  // tree_root.cc
  control::Message join_at_root(const control::JoinTree& request);
  std::optional<control::Refused> refuse_leaf(const control::JoinTree& request) const;
  std::optional<control::Refused> refuse_tree(const std::string& tenant) const;
  std::optional<control::Refused> take_in(PendingTree& tree, const control::JoinTree& request);
  std::optional<control::Refused> create_at_root(uint64_t tree);
  // tree_leaf.cc
  control::Message join_at_leaf(const control::JoinTree& request);
  control::Message begin_at_leaf(const control::JoinTree& request);
  std::optional<control::JoinTree> part_due();
  void hear_of_part(const control::JoinTree& asked, const control::Message& answer);
  void take_part(uint64_t tree, const control::JobGrant& grant);
  std::optional<std::string> refuse_grant(const PendingTree& tree,
                                          const control::JobGrant& grant) const;
  void hear_of_job(const control::JobRef& above, const control::Message& answer);
  void close_above(const control::JobRef& job);
  // tree.cc
  control::Message again(const Job& job, const control::JoinTree& request) const;
  PendingTree& begin_tree(const control::JoinTree& request, uint64_t within_ns);
  control::Refused fail_tree(PendingTree& tree, control::Refused why);
  void expire_trees(uint64_t looked_ns);
  control::Message driver_failed(const char* what, uint16_t job, const Error& error);

  SwitchDriver& driver_;
  ControllerOptions options_;
  const Clock& clock_;
  const SwitchShape shape_;
  JobNumbers numbers_;
  JobNumbers tree_numbers_;  // a root's
  std::map<uint16_t, Job> jobs_;
  Caller caller_;  // of the request that is being handled
  bool draining_ = false;
  std::map<uint64_t, PendingTree> pending_;   // by the name of the tree
  std::deque<control::JobRef> closed_above_;  // that the root was not told of
  std::string parent_trouble_;
  ControlCounters counters_;
};

}  // namespace slime::net
