#include "switch/controller/controller.h"

#include <algorithm>

#include "base/log.h"
#include "switch/controller/report.h"

namespace slime::net {

using control::JobState;
using control::Message;
using control::Refusal;
using control::Refused;
using control::State;

namespace {

constexpr uint64_t kRemoveAgainNs = 1'000'000'000;

}  // namespace

Controller::Controller(SwitchDriver& driver, ControllerOptions options, const Clock& clock)
    : driver_(driver),
      options_(std::move(options)),
      clock_(clock),
      shape_(driver.shape()),
      numbers_(1, options_.job_numbers, options_.seed),
      tree_numbers_(control::kFirstTreeJob, options_.job_numbers, options_.seed) {}

// What only operators may do, and whose job is asked for.
std::optional<Refused> Controller::refuse_caller(const Message& request) const {
  if (caller_.is_operator()) return std::nullopt;
  const auto* create = std::get_if<control::CreateJob>(&request);
  const auto* join = std::get_if<control::JoinTree>(&request);
  const auto* fence = std::get_if<control::Fence>(&request);
  const std::string* tenant = create != nullptr ? &create->tenant
                              : join != nullptr ? &join->part.tenant
                                                : nullptr;
  if (tenant != nullptr && !caller_.may_act_for(*tenant)) {
    return Refused{Refusal::kForbidden,
                   "tenant " + caller_.tenant + " asks for a job of tenant " + *tenant};
  }
  if (std::holds_alternative<control::Drain>(request) ||
      std::holds_alternative<control::Report>(request) ||
      (fence != nullptr && fence->by_operator)) {
    return Refused{Refusal::kForbidden,
                   "this is for operators, and tenant " + caller_.tenant + " asks for it"};
  }
  return std::nullopt;
}

Message Controller::handle(const Message& request, const Caller& caller) {
  counters_.requests.add();
  caller_ = caller;
  if (auto refused = refuse_caller(request)) {
    counters_.forbidden.add();
    return *refused;
  }
  return std::visit([this](const auto& kind) { return on(kind); }, request);
}

template <typename NoRequest>
Message Controller::on(const NoRequest&) {
  return Refused{Refusal::kMalformed, "this message is no request"};
}

// An ended job is gone for everybody but the memory count.
Controller::Job* Controller::find(const control::JobRef& ref) {
  const auto at = jobs_.find(ref.job);
  if (at == jobs_.end() || at->second.ended) return nullptr;
  Job& job = at->second;
  if (!caller_.may_act_for(job.tenant)) return nullptr;
  const bool known = job.leaf_ids.empty() ? same_nonce(job.ref.id, ref.id)
                                          : std::ranges::count(job.leaf_ids, ref.id) != 0;
  return known ? &job : nullptr;
}

// A root's job lives as long as all its leaves hold it.
void Controller::renew(Job& job, const control::JobId& id) {
  job.lease_until_ns = now_ns() + options_.lease_ns;
  if (job.leaf_until_ns.empty()) return;
  const auto leaf = std::ranges::find(job.leaf_ids, id) - job.leaf_ids.begin();
  job.leaf_until_ns[static_cast<size_t>(leaf)] = job.lease_until_ns;
  job.lease_until_ns = *std::ranges::min_element(job.leaf_until_ns);
}

uint64_t Controller::ends_ns(const Job& job) const {
  return job.above && !job.ended ? std::min(job.lease_until_ns, job.above->until_ns)
                                 : job.lease_until_ns;
}

Usage Controller::usage() const {
  Usage all;
  for (const auto& [number, job] : jobs_) {
    ++all.jobs;
    all.slot_bytes += job.slot_bytes;
  }
  for (const auto& [name, tree] : pending_) {
    if (tree.failed) continue;
    ++all.jobs;
    all.slot_bytes += tree.reserved.slot_bytes;
  }
  return all;
}

std::map<std::string, Usage> Controller::usage_by_tenant() const {
  std::map<std::string, Usage> usage;
  for (const auto& [number, job] : jobs_) {
    Usage& own = usage[job.tenant];
    ++own.jobs;
    own.slot_bytes += job.slot_bytes;
  }
  for (const auto& [name, tree] : pending_) {
    if (tree.failed) continue;
    Usage& own = usage[tree.terms.part.tenant];
    ++own.jobs;
    own.slot_bytes += tree.reserved.slot_bytes;
  }
  return usage;
}

// A worker of an ended generation does not keep the job alive.
Message Controller::on(const control::Heartbeat& request) {
  Job* job = find(request.job);
  if (job == nullptr) return JobState{State::kGone, 0};
  if (job->ref.generation != request.job.generation)
    return JobState{State::kFenced, job->ref.generation};
  renew(*job, request.job.id);
  return JobState{State::kAlive, job->ref.generation};
}

// To close what is gone is no failure: the worker whose answer was lost asks again.
Message Controller::on(const control::CloseJob& request) {
  Job* job = find(request.job);
  if (job == nullptr) return control::Done{};
  if (job->ref.generation != request.job.generation) {
    return Refused{Refusal::kNoJob, "job " + std::to_string(request.job.job) +
                                        " lives on in generation " +
                                        std::to_string(job->ref.generation)};
  }
  counters_.jobs_closed.add();
  SLIME_INFO("job %u: closed by its workers", request.job.job);
  remove(jobs_.find(request.job.job));
  return control::Done{};
}

Message Controller::on(const control::Fence& request) {
  const auto at = jobs_.find(request.job.job);
  // Another tenant's job is to the caller as if it were not there.
  const bool known =
      at != jobs_.end() && !at->second.ended && caller_.may_act_for(at->second.tenant);
  Job* job = request.by_operator ? (known ? &at->second : nullptr) : find(request.job);
  if (job == nullptr) {
    return Refused{Refusal::kNoJob, "there is no job " + std::to_string(request.job.job) +
                                        (known ? " of that id" : "")};
  }
  if (!request.by_operator && job->ref.generation != request.job.generation) {
    return JobState{State::kFenced, job->ref.generation};
  }
  if (job->tree != 0) {  // the other switches of the tree cannot follow at once: it ends
    counters_.fences.add();
    SLIME_INFO("job %u: fenced, so the tree ends", job->ref.job);
    const JobState ended{State::kGone, job->ref.generation};
    remove(jobs_.find(job->ref.job));
    return ended;
  }
  const auto generation = numbers_.advance(job->ref.job, now_ns());
  if (!generation) {
    const uint64_t wait_ms = numbers_.wait_ns(job->ref.job, now_ns()) / 1'000'000 + 1;
    return Refused{Refusal::kBusy, "its generation began just now; it may change again in " +
                                       std::to_string(wait_ms) + " ms"};
  }
  const auto token = draw_token();
  if (!token) return Refused{Refusal::kInternal, token.error().what};
  if (auto fenced = driver_.fence(job->ref.job, *generation, *token); !fenced) {
    return driver_failed("fence", job->ref.job, fenced.error());
  }
  counters_.fences.add();
  job->ref.generation = job->spec.generation = *generation;
  job->spec.token = *token;
  job->lease_until_ns = now_ns() + options_.lease_ns;  // time to join the new generation
  SLIME_INFO("job %u: fenced, now generation %u", job->ref.job, *generation);
  return JobState{State::kFenced, job->ref.generation};
}

Message Controller::on(const control::Report& request) {
  std::string text = report_json(*this, request.counters);
  if (text.size() > control::kMaxAnswerBytes) {
    return Refused{Refusal::kInternal, "the report is longer than a message; ask without counters"};
  }
  return control::Text{std::move(text)};
}

Message Controller::on(const control::Drain& request) {
  draining_ = request.on;
  SLIME_INFO("drain %s, %zu jobs", draining_ ? "on" : "off", jobs_.size());
  return control::Done{};
}

void Controller::expire(uint64_t looked_ns) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const auto next = std::next(at);
    if (ends_ns(at->second) <= looked_ns) {
      if (!at->second.ended) {
        counters_.jobs_expired.add();
        const bool by_root = at->second.lease_until_ns > looked_ns;
        SLIME_WARN(
            "job %u of tenant %s: no heartbeat %s for %g s, removed", at->first,
            at->second.tenant.c_str(), by_root ? "answered by the root" : "came",
            static_cast<double>(by_root ? at->second.above->lease_ns : options_.lease_ns) * 1e-9);
      }
      remove(at);
    }
    at = next;
  }
  expire_trees(looked_ns);
}

uint64_t Controller::next_expiry_ns() const {
  uint64_t next = UINT64_MAX;
  for (const auto& [number, job] : jobs_) next = std::min(next, ends_ns(job));
  for (const auto& [name, tree] : pending_) next = std::min(next, tree.deadline_ns);
  return next;
}

// The number and the memory stay taken until the switch has let go of them.
void Controller::remove(std::map<uint16_t, Job>::iterator at) {
  if (at->second.above) close_above(at->second.above->job);
  at->second.above.reset();
  if (auto removed = driver_.remove_job(at->first); !removed) {
    (void)driver_failed("remove", at->first, removed.error());
    at->second.ended = true;
    at->second.lease_until_ns = now_ns() + kRemoveAgainNs;
    return;
  }
  give_back(at->second);
  jobs_.erase(at);
}

// A leaf's number is its root's to give back.
void Controller::give_back(const Job& job) {
  if (job.tree == 0)
    numbers_.give_back(job.ref.job);
  else if (job.spec.children_are_switches)
    tree_numbers_.give_back(job.ref.job);
}

Message Controller::driver_failed(const char* what, uint16_t job, const Error& error) {
  counters_.driver_failures.add();
  SLIME_WARN("switch failed to %s job %u: %s", what, job, error.what.c_str());
  const Refusal why = error.status == Status::kNoMemory ? Refusal::kMemory : Refusal::kInternal;
  return Refused{why, std::string("the switch failed to ") + what + " job " + std::to_string(job) +
                          ": " + error.what};
}

}  // namespace slime::net
