// The jobs of a switch: their numbers, owners and leases, and what the driver has of each.
//
// States of a job:
//   alive    from install() until its lease runs out, its workers close it, or an operator ends it.
//   A
//            leaf's job ends with its lease at the root, too. fence() begins another generation
//   ended    the driver has failed to remove it: find() does not return it any more, its number and
//            memory stay taken, and expire() tries again to remove it
//
// Invariants: all() has exactly the jobs that the switch may have, by number. A number is given
// back only when the switch has removed the job. Job numbers are used again; a job's id is not, so
// a late worker never names another job.
// Thread rules: one thread, the controller's.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "switch/controller/admission.h"
#include "switch/controller/job_numbers.h"

namespace slime::net {

// Counters of the control plane, for operators. X(name, help)
#define SLIME_CONTROL_COUNTERS(X)                                                      \
  X(requests, "requests carried out or refused")                                       \
  X(jobs_created, "jobs created")                                                      \
  X(jobs_refused, "jobs refused")                                                      \
  X(trees_created, "jobs created as the root of a tree")                               \
  X(trees_failed, "trees of switches that got no job")                                 \
  X(parent_failures, "questions to the parent that got no answer")                     \
  X(jobs_closed, "jobs closed by their workers")                                       \
  X(jobs_expired, "jobs whose lease ran out")                                          \
  X(fences, "generations ended")                                                       \
  X(driver_failures, "calls to the switch that failed")                                \
  X(connections, "control connections accepted")                                       \
  X(connections_refused, "control connections refused or reset, all places are taken") \
  X(connections_late, "control connections ended because a deadline passed")           \
  X(unauthorized, "control connections ended for a wrong key, or none")                \
  X(forbidden, "requests of tenants for what is another's, or operators'")             \
  X(replayed, "control connections ended for a request out of sequence")               \
  X(malformed, "control connections ended for bytes that are no request")

SLIME_DECLARE_COUNTERS(ControlCounters, ControlTotals, SLIME_CONTROL_COUNTERS)

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

// In whose name a request is made: proven by its signature or, where there are no keys, as claimed.
struct Caller {
  std::string tenant;  // empty: an operator, who may do everything
  bool is_operator() const { return tenant.empty(); }
  bool may_act_for(const std::string& other) const { return is_operator() || tenant == other; }
};

// A leaf's lease of the job at the root.
struct RootLease {
  control::JobRef job;
  uint64_t lease_ns = 0;
  uint64_t renew_ns = 0;  // when to send a heartbeat
  uint64_t until_ns = 0;
};

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
  std::vector<control::JobId> leaf_ids = {};  // at a root: the id that each leaf names
  std::vector<uint64_t> leaf_until_ns = {};
  std::optional<RootLease> root_lease = {};  // at a leaf

  // 0: its children are workers; 1: they are switches.
  uint32_t level() const { return spec.children_are_switches ? 1 : 0; }
};

class Jobs {
 public:
  Jobs(SwitchDriver& driver, const ControllerOptions& options, const Clock& clock,
       ControlCounters& counters);

  const std::map<uint16_t, Job>& all() const { return jobs_; }
  void add_to(SwitchUsage* usage) const;
  // nullptr: there is no such job, it belongs to another tenant, or it has ended.
  Job* find(uint16_t number, const Caller& caller);
  Job* find(const control::JobRef& ref, const Caller& caller);  // by its id, too
  Job* find_tree(uint64_t name);
  Job* find_root_lease(const control::JobRef& at_root);

  // To create a job: take a number, prepare() a job of that number, and install() it. create() does
  // all three for a job of this switch alone.
  control::Message create(const control::CreateJob& wanted, const Grant& grant);
  std::optional<JobNumber> take_tree_number() { return tree_numbers_.take(clock_.now_ns()); }
  void give_back_tree_number(uint16_t number) { tree_numbers_.give_back(number); }
  Result<Job> prepare(const control::CreateJob& wanted, const Grant& grant, JobNumber number) const;
  // Gives the job to the switch. Returns a grant, or a refusal, after which the number is free.
  control::Message install(Job job);
  control::JobGrant grant_of(const Job& job) const;

  // `id` is the one by which find() found the job.
  void renew(Job& job, const control::JobId& id);
  control::Message fence(Job& job);
  void remove(uint16_t number);
  // Removes the jobs whose lease was over at `now_ns`.
  void expire(uint64_t now_ns);
  uint64_t next_expiry_ns() const;  // UINT64_MAX: no job

  // Jobs at the root that this leaf has left, or never took. The uplink closes them at the root.
  // The list is bounded: the lease of a job that falls out of it runs out at the root.
  void close_at_root(const control::JobRef& job);
  std::optional<control::JobRef> next_to_close();
  bool has_to_close() const { return !to_close_.empty(); }

 private:
  static uint64_t ends_ns(const Job& job);
  void give_back(const Job& job);
  control::Refused driver_failed(const char* what, uint16_t job, const Error& error);

  SwitchDriver& driver_;
  const ControllerOptions& options_;
  const Clock& clock_;
  ControlCounters& counters_;
  const SwitchShape shape_;
  JobNumbers numbers_;       // of jobs of this switch alone
  JobNumbers tree_numbers_;  // of trees whose root this is; a leaf's number is its root's
  std::map<uint16_t, Job> jobs_;
  std::deque<control::JobRef> to_close_;
};

}  // namespace slime::net
