#include "switch/controller/controller.h"

#include <algorithm>

#include "base/log.h"

namespace slime::net {

using control::JobState;
using control::Message;
using control::Refusal;
using control::Refused;
using control::State;

// Refuses tenants what only operators may do, and jobs of other tenants.
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
  state_.counters.requests.add();
  caller_ = caller;
  if (auto refused = refuse_caller(request)) {
    state_.counters.forbidden.add();
    return *refused;
  }
  return std::visit([this](const auto& kind) { return on(kind); }, request);
}

template <typename NoRequest>
Message Controller::on(const NoRequest&) {
  return Refused{Refusal::kMalformed, "this message is no request"};
}

Message Controller::on(const control::CreateJob& request) {
  control::CreateJob wanted = request;
  // The scope of a link-local address means something on the worker's host only.
  for (SocketAddress& child : wanted.children) child.set_scope(0);
  const auto grant = state_.admission.admit(wanted, usage());
  if (grant) return state_.jobs.create(wanted, *grant);
  state_.counters.jobs_refused.add();
  return grant.error();
}

// A leaf that asks its root gives its number of shards; workers that ask a leaf give 0.
Message Controller::on(const control::JoinTree& request) {
  if (const Job* job = state_.jobs.find_tree(request.tree))
    return grant_again(state_.jobs, *job, request);
  Message answer = request.shards > 0 ? join_at_root(state_, request) : leaf_.join(request);
  if (std::holds_alternative<Refused>(answer)) state_.counters.jobs_refused.add();
  return answer;
}

// A worker of an ended generation does not keep the job alive.
Message Controller::on(const control::Heartbeat& request) {
  Job* job = state_.jobs.find(request.job, caller_);
  if (job == nullptr) return JobState{State::kGone, 0};
  if (job->ref.generation != request.job.generation)
    return JobState{State::kFenced, job->ref.generation};
  state_.jobs.renew(*job, request.job.id);
  return JobState{State::kAlive, job->ref.generation};
}

// A job that is gone counts as closed: a worker whose answer was lost asks again.
Message Controller::on(const control::CloseJob& request) {
  const Job* job = state_.jobs.find(request.job, caller_);
  if (job == nullptr) return control::Done{};
  if (job->ref.generation != request.job.generation) {
    return Refused{Refusal::kNoJob, "job " + std::to_string(request.job.job) +
                                        " lives on in generation " +
                                        std::to_string(job->ref.generation)};
  }
  state_.counters.jobs_closed.add();
  SLIME_INFO("job %u: closed by its workers", request.job.job);
  state_.jobs.remove(request.job.job);
  return control::Done{};
}

// An operator names a job by its number alone; a worker by its id and the generation that it has
// seen, so that of many workers only the first changes anything.
Message Controller::on(const control::Fence& request) {
  Job* const of_number = state_.jobs.find(request.job.job, caller_);
  Job* const job = request.by_operator ? of_number : state_.jobs.find(request.job, caller_);
  if (job == nullptr) {
    return Refused{Refusal::kNoJob, "there is no job " + std::to_string(request.job.job) +
                                        (of_number != nullptr ? " of that id" : "")};
  }
  if (!request.by_operator && job->ref.generation != request.job.generation) {
    return JobState{State::kFenced, job->ref.generation};
  }
  return state_.jobs.fence(*job);
}

Message Controller::on(const control::Report& request) {
  std::string text = report_json(*this, request.counters);
  if (text.size() > control::kMaxAnswerBytes) {
    return Refused{Refusal::kInternal, "the report is longer than a message; ask without counters"};
  }
  return control::Text{std::move(text)};
}

Message Controller::on(const control::Drain& request) {
  state_.admission.set_draining(request.on);
  SLIME_INFO("drain %s, %zu jobs", request.on ? "on" : "off", state_.jobs.all().size());
  return control::Done{};
}

ControlTotals Controller::totals() const {
  ControlTotals totals;
  totals.add(state_.counters);
  return totals;
}

void Controller::expire(uint64_t now_ns) {
  state_.jobs.expire(now_ns);
  state_.trees.expire(now_ns);
}

uint64_t Controller::next_expiry_ns() const {
  return std::min(state_.jobs.next_expiry_ns(), state_.trees.next_expiry_ns());
}

}  // namespace slime::net
