// Who may use a switch, for how long, and under which number: jobs, leases, tenants. No sockets:
// requests come decoded, answers go out as messages.
//
// Thread rules: one thread.
#pragma once

#include <slime/clock.h>
#include <slime/switch_control.h>

#include <map>
#include <optional>
#include <string>

#include "switch/controller/admission.h"
#include "switch/controller/counters.h"
#include "switch/controller/numbers.h"

namespace slime::net {

struct ControllerOptions {
  static constexpr uint32_t kMaxJobs = 512;  // so that a report fits a message

  uint32_t max_jobs = 64;
  uint16_t job_numbers = 4096;  // at least max_jobs
  uint64_t lease_ns = 30'000'000'000;
  uint64_t seed = 0;  // different in every run of the daemon
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
    uint64_t slot_bytes = 0;
    uint64_t created_ns = 0;
    uint64_t lease_until_ns = 0;
    bool ended = false;  // the switch failed to remove it; tried again at lease_until_ns
  };

  Controller(SwitchDriver& driver, ControllerOptions options, const Clock& clock);

  // `request` is one (control::is_request); a refusal is an answer.
  control::Message handle(const control::Message& request);
  // Removes the jobs whose lease is over.
  void expire();
  uint64_t next_expiry_ns() const;  // UINT64_MAX: no job

  const SwitchDriver& driver() const { return driver_; }
  const ControllerOptions& options() const { return options_; }
  const std::map<uint16_t, Job>& jobs() const { return jobs_; }
  Usage usage() const;
  std::map<std::string, Usage> usage_by_tenant() const;
  bool draining() const { return draining_; }
  uint64_t now_ns() const { return clock_.now_ns(); }
  ControlCounters& counters() { return counters_; }
  const ControlCounters& counters() const { return counters_; }

 private:
  control::Message on(const control::CreateJob& request);
  control::Message on(const control::Heartbeat& request);
  control::Message on(const control::CloseJob& request);
  control::Message on(const control::Fence& request);
  control::Message on(const control::Report& request);
  control::Message on(const control::Drain& request);
  template <typename NoRequest>
  control::Message on(const NoRequest&);

  Job* find(const control::JobRef& ref);
  TenantQuota quota_of(const std::string& tenant) const;
  Admission may_create(const control::CreateJob& wanted) const;
  control::Message add(const control::CreateJob& wanted, const Grant& grant, JobNumber number);
  control::JobGrant grant_of(const Job& job) const;
  void remove(std::map<uint16_t, Job>::iterator at);
  control::Message driver_failed(const char* what, uint16_t job, const Error& error);

  SwitchDriver& driver_;
  const ControllerOptions options_;
  const Clock& clock_;
  const SwitchShape shape_;
  JobNumbers numbers_;
  std::map<uint16_t, Job> jobs_;
  uint64_t next_id_;
  bool draining_ = false;
  ControlCounters counters_;
};

}  // namespace slime::net
