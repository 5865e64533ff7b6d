// How a job comes to be.

#include <algorithm>

#include "base/log.h"
#include "switch/controller/controller.h"

namespace slime::net {

using control::Message;
using control::Refusal;
using control::Refused;

namespace {

std::string rails_words(uint32_t rails) {
  return rails > 1 ? " on " + std::to_string(rails) + " rails each" : "";
}

}  // namespace

TenantQuota Controller::quota_of(const std::string& tenant) const {
  const auto at = options_.tenants.find(tenant);
  return at == options_.tenants.end() ? options_.default_quota : at->second;
}

Admission Controller::may_create(const control::CreateJob& wanted) const {
  const auto refuse = [](Refusal why, const char* text) {
    return tl::unexpected<Refused>(Refused{why, text});
  };
  if (draining_) return refuse(Refusal::kDraining, "this switch takes no new jobs");
  if (usage().jobs >= options_.max_jobs) {
    return refuse(Refusal::kMemory, "as many jobs as this switch may have (jobs.max) are there");
  }
  if (auto fine = check_children(wanted.children, wanted.rails, shape_.address); !fine) {
    return tl::unexpected<Refused>(std::move(fine.error()));
  }
  const auto by_tenant = usage_by_tenant();
  const auto own = by_tenant.find(wanted.tenant);
  return admit(wanted, shape_, quota_of(wanted.tenant), usage(),
               own == by_tenant.end() ? Usage{} : own->second);
}

Message Controller::on(const control::CreateJob& request) {
  control::CreateJob wanted = request;
  // The scope of a link-local address means something on the worker's host only.
  for (SocketAddress& child : wanted.children) child.set_scope(0);
  auto grant = may_create(wanted);
  if (!grant) {
    counters_.jobs_refused.add();
    return std::move(grant.error());
  }
  const auto number = numbers_.take(now_ns());
  if (!number) {
    counters_.jobs_refused.add();
    return Refused{Refusal::kBusy, "all job numbers are in use, or were until just now"};
  }
  auto job = job_of(wanted, *grant, *number);
  if (!job) {
    numbers_.give_back(number->job);
    return Refused{Refusal::kInternal, job.error().what};
  }
  return add(std::move(*job));
}

Result<Controller::Job> Controller::job_of(const control::CreateJob& wanted, const Grant& grant,
                                           JobNumber number) {
  Job job;
  const auto id = random_nonce();
  const auto token = draw_token();
  if (!id) return fail(id.error());
  if (!token) return fail(token.error());
  job.ref = {*id, number.job, number.generation};
  job.tenant = wanted.tenant;
  job.session = wanted.session;
  job.shares = wanted.shares;
  job.share = wanted.share;
  job.slot_bytes = grant.slot_bytes;
  job.created_ns = now_ns();
  job.lease_until_ns = job.created_ns + options_.lease_ns;
  job.spec = {.job = number.job,
              .generation = number.generation,
              .token = *token,
              .slots = grant.slots,
              .max_lanes = grant.lanes,
              .formats = grant.formats,
              .children = wanted.children,
              .rails = wanted.rails,
              .parent = std::nullopt};
  return job;
}

Message Controller::add(Job job) {
  if (auto added = driver_.add_job(job.spec); !added) {
    give_back(job);
    counters_.jobs_refused.add();
    return driver_failed("add", job.ref.job, added.error());
  }
  counters_.jobs_created.add();
  SLIME_INFO("job %u, generation %u: tenant %s, %zu children%s%s, %u slots of %u lanes",
             job.ref.job, job.ref.generation, job.tenant.c_str(), job.spec.child_count(),
             job.spec.children_are_switches ? " that are switches"
             : job.spec.parent              ? " and a parent"
                                            : "",
             rails_words(job.spec.rails).c_str(), job.spec.slots, job.spec.max_lanes);
  const auto at = jobs_.emplace(job.ref.job, std::move(job)).first;
  return grant_of(at->second);
}

control::JobGrant Controller::grant_of(const Job& job) const {
  return {.job = job.ref,
          .token = job.spec.token,
          .address = shape_.address,
          .shards = shape_.shards,
          .slots = job.spec.slots,
          .lanes = job.spec.max_lanes,
          .formats = job.spec.formats,
          .lease_ms = static_cast<uint32_t>(std::max<uint64_t>(options_.lease_ns / 1'000'000, 1))};
}

}  // namespace slime::net
