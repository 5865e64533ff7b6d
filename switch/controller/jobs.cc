#include "switch/controller/jobs.h"

#include <algorithm>

#include "base/log.h"

namespace slime::net {

using control::JobState;
using control::Message;
using control::Refusal;
using control::Refused;
using control::State;

namespace {

constexpr uint64_t kRemoveAgainNs = 1'000'000'000;

}  // namespace

Jobs::Jobs(SwitchDriver& driver, const ControllerOptions& options, const Clock& clock,
           ControlCounters& counters)
    : driver_(driver),
      options_(options),
      clock_(clock),
      counters_(counters),
      shape_(driver.shape()),
      numbers_(1, options.job_numbers, options.seed),
      tree_numbers_(control::kFirstTreeJob, options.job_numbers, options.seed) {}

void Jobs::add_to(SwitchUsage* usage) const {
  for (const auto& [number, job] : jobs_) usage->add(job.tenant, job.slot_bytes);
}

// A caller does not find jobs of other tenants, so it cannot tell them from numbers without a job.
// An ended job is not found either, although it still counts for memory.
Job* Jobs::find(uint16_t number, const Caller& caller) {
  const auto at = jobs_.find(number);
  const bool known =
      at != jobs_.end() && !at->second.ended && caller.may_act_for(at->second.tenant);
  return known ? &at->second : nullptr;
}

Job* Jobs::find(const control::JobRef& ref, const Caller& caller) {
  Job* job = find(ref.job, caller);
  if (job == nullptr) return nullptr;
  const bool known = job->leaf_ids.empty() ? same_nonce(job->ref.id, ref.id)
                                           : std::ranges::count(job->leaf_ids, ref.id) != 0;
  return known ? job : nullptr;
}

Job* Jobs::find_tree(uint64_t name) {
  for (auto& [number, job] : jobs_) {
    if (job.tree == name && !job.ended) return &job;
  }
  return nullptr;
}

Job* Jobs::find_root_lease(const control::JobRef& at_root) {
  for (auto& [number, job] : jobs_) {
    if (job.root_lease && job.root_lease->job == at_root) return &job;
  }
  return nullptr;
}

// Gives the number back if no job is made. install() does so if the switch fails.
Message Jobs::create(const control::CreateJob& wanted, const Grant& grant) {
  const auto number = numbers_.take(clock_.now_ns());
  if (!number) {
    counters_.jobs_refused.add();
    return Refused{Refusal::kBusy, "all job numbers are in use, or were until just now"};
  }
  auto job = prepare(wanted, grant, *number);
  if (job) return install(std::move(*job));
  numbers_.give_back(number->job);
  return Refused{Refusal::kInternal, job.error().what};
}

// Id and token are random, and only the grant carries them. So only members of the job can name it
// and send its packets.
Result<Job> Jobs::prepare(const control::CreateJob& wanted, const Grant& grant,
                          JobNumber number) const {
  const auto id = random_nonce();
  const auto token = draw_token();
  if (!id) return fail(id.error());
  if (!token) return fail(token.error());
  const uint64_t now = clock_.now_ns();
  return Job{.ref = {*id, number.job, number.generation},
             .tenant = wanted.tenant,
             .spec = {.job = number.job,
                      .generation = number.generation,
                      .token = *token,
                      .slots = grant.slots,
                      .max_lanes = grant.lanes,
                      .formats = grant.formats,
                      .children = wanted.children,
                      .rails = wanted.rails,
                      .parent = std::nullopt},
             .session = wanted.session,
             .shares = wanted.shares,
             .share = wanted.share,
             .slot_bytes = grant.slot_bytes,
             .created_ns = now,
             .lease_until_ns = now + options_.lease_ns};
}

// From here on packets of the job take part.
Message Jobs::install(Job job) {
  if (auto added = driver_.add_job(job.spec); !added) {
    give_back(job);
    counters_.jobs_refused.add();
    return driver_failed("add", job.ref.job, added.error());
  }
  counters_.jobs_created.add();
  const std::string rails =
      job.spec.rails > 1 ? " on " + std::to_string(job.spec.rails) + " rails each" : "";
  SLIME_INFO("job %u, generation %u: tenant %s, %zu children%s%s, %u slots of %u lanes",
             job.ref.job, job.ref.generation, job.tenant.c_str(), job.spec.child_count(),
             job.spec.children_are_switches ? " that are switches"
             : job.spec.parent              ? " and a parent"
                                            : "",
             rails.c_str(), job.spec.slots, job.spec.max_lanes);
  return grant_of(jobs_.emplace(job.ref.job, std::move(job)).first->second);
}

control::JobGrant Jobs::grant_of(const Job& job) const {
  return {.job = job.ref,
          .token = job.spec.token,
          .address = shape_.address,
          .shards = shape_.shards,
          .slots = job.spec.slots,
          .lanes = job.spec.max_lanes,
          .formats = job.spec.formats,
          .lease_ms = static_cast<uint32_t>(std::max<uint64_t>(options_.lease_ns / 1'000'000, 1))};
}

// At a root every leaf has a lease of its own, and the job has the one that ends first: without the
// workers below one leaf no round can be complete.
void Jobs::renew(Job& job, const control::JobId& id) {
  job.lease_until_ns = clock_.now_ns() + options_.lease_ns;
  if (job.leaf_until_ns.empty()) return;
  const auto leaf = std::ranges::find(job.leaf_ids, id) - job.leaf_ids.begin();
  job.leaf_until_ns[static_cast<size_t>(leaf)] = job.lease_until_ns;
  job.lease_until_ns = *std::ranges::min_element(job.leaf_until_ns);
}

// The driver changes the generation first, and the job only if that succeeds. If it fails, workers
// keep the old generation, and a repeated fence takes the one after.
Message Jobs::fence(Job& job) {
  const uint16_t number = job.ref.job;
  if (job.tree != 0) {  // the other switches of the tree cannot follow at once: it ends
    counters_.fences.add();
    SLIME_INFO("job %u: fenced, so the tree ends", number);
    const JobState ended{State::kGone, job.ref.generation};
    remove(number);
    return ended;
  }
  const uint64_t now = clock_.now_ns();
  const auto generation = numbers_.advance(number, now);
  if (!generation) {
    const uint64_t wait_ms = numbers_.wait_ns(number, now) / 1'000'000 + 1;
    return Refused{Refusal::kBusy, "its generation began just now; it may change again in " +
                                       std::to_string(wait_ms) + " ms"};
  }
  const auto token = draw_token();
  if (!token) return Refused{Refusal::kInternal, token.error().what};
  if (auto fenced = driver_.fence(number, *generation, *token); !fenced) {
    return driver_failed("fence", number, fenced.error());
  }
  counters_.fences.add();
  job.ref.generation = job.spec.generation = *generation;
  job.spec.token = *token;
  job.lease_until_ns = now + options_.lease_ns;  // time to join the new generation
  SLIME_INFO("job %u: fenced, now generation %u", number, *generation);
  return JobState{State::kFenced, job.ref.generation};
}

// Number and memory stay taken until the driver has removed the job: until then the device may
// still have it.
void Jobs::remove(uint16_t number) {
  const auto at = jobs_.find(number);
  Job& job = at->second;
  if (job.root_lease) close_at_root(job.root_lease->job);
  job.root_lease.reset();
  if (auto removed = driver_.remove_job(number); !removed) {
    (void)driver_failed("remove", number, removed.error());
    job.ended = true;
    job.lease_until_ns = clock_.now_ns() + kRemoveAgainNs;
    return;
  }
  give_back(job);
  jobs_.erase(at);
}

// The number of a leaf's job belongs to the root.
void Jobs::give_back(const Job& job) {
  if (job.tree == 0)
    numbers_.give_back(job.ref.job);
  else if (job.spec.children_are_switches)
    tree_numbers_.give_back(job.ref.job);
}

uint64_t Jobs::ends_ns(const Job& job) {
  return job.root_lease && !job.ended ? std::min(job.lease_until_ns, job.root_lease->until_ns)
                                      : job.lease_until_ns;
}

// A leaf's job has two leases: that of its workers here, and its own at the root. The log names the
// one that is over.
void Jobs::expire(uint64_t now_ns) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const Job& job = (at++)->second;  // remove() may erase it
    if (ends_ns(job) > now_ns) continue;
    if (!job.ended) {
      counters_.jobs_expired.add();
      const bool by_root = job.lease_until_ns > now_ns;
      SLIME_WARN(
          "job %u of tenant %s: no heartbeat %s for %g s, removed", job.ref.job, job.tenant.c_str(),
          by_root ? "answered by the root" : "came",
          static_cast<double>(by_root ? job.root_lease->lease_ns : options_.lease_ns) * 1e-9);
    }
    remove(job.ref.job);
  }
}

uint64_t Jobs::next_expiry_ns() const {
  uint64_t next = UINT64_MAX;
  for (const auto& [number, job] : jobs_) next = std::min(next, ends_ns(job));
  return next;
}

void Jobs::close_at_root(const control::JobRef& job) {
  if (to_close_.size() >= options_.max_jobs) to_close_.pop_front();
  to_close_.push_back(job);
}

std::optional<control::JobRef> Jobs::next_to_close() {
  if (to_close_.empty()) return std::nullopt;
  const control::JobRef job = to_close_.front();
  to_close_.pop_front();
  return job;
}

Refused Jobs::driver_failed(const char* what, uint16_t job, const Error& error) {
  counters_.driver_failures.add();
  SLIME_WARN("switch failed to %s job %u: %s", what, job, error.what.c_str());
  const Refusal why = error.status == Status::kNoMemory ? Refusal::kMemory : Refusal::kInternal;
  return {why, std::string("the switch failed to ") + what + " job " + std::to_string(job) + ": " +
                   error.what};
}

}  // namespace slime::net
