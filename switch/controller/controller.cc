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

Controller::Controller(SwitchDriver& driver, ControllerOptions options, const Clock& clock)
    : driver_(driver),
      options_(std::move(options)),
      clock_(clock),
      admission_(driver.shape(), options_.max_jobs, options_.default_quota, options_.tenants),
      jobs_(driver, options_, clock, counters_),
      trees_(clock, counters_),
      root_(options_, driver.shape(), admission_, jobs_, trees_, counters_),
      leaf_(options_, driver.shape(), clock, admission_, jobs_, trees_, counters_) {}

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

Message Controller::on(const control::CreateJob& request) {
  control::CreateJob wanted = request;
  // The scope of a link-local address means something on the worker's host only.
  for (SocketAddress& child : wanted.children) child.set_scope(0);
  const auto grant = admission_.admit(wanted, usage());
  if (grant) return jobs_.create(wanted, *grant);
  counters_.jobs_refused.add();
  return grant.error();
}

// A leaf that asks its root tells its number of shards; workers that ask a leaf tell none.
Message Controller::on(const control::JoinTree& request) {
  if (const Job* job = jobs_.find_tree(request.tree)) return grant_again(jobs_, *job, request);
  Message answer = request.shards > 0 ? root_.join(request) : leaf_.join(request);
  if (std::holds_alternative<Refused>(answer)) counters_.jobs_refused.add();
  return answer;
}

// A worker of an ended generation does not keep the job alive.
Message Controller::on(const control::Heartbeat& request) {
  Job* job = jobs_.find(request.job, caller_);
  if (job == nullptr) return JobState{State::kGone, 0};
  if (job->ref.generation != request.job.generation)
    return JobState{State::kFenced, job->ref.generation};
  jobs_.renew(*job, request.job.id);
  return JobState{State::kAlive, job->ref.generation};
}

// To close what is gone is no failure: the worker whose answer was lost asks again.
Message Controller::on(const control::CloseJob& request) {
  const Job* job = jobs_.find(request.job, caller_);
  if (job == nullptr) return control::Done{};
  if (job->ref.generation != request.job.generation) {
    return Refused{Refusal::kNoJob, "job " + std::to_string(request.job.job) +
                                        " lives on in generation " +
                                        std::to_string(job->ref.generation)};
  }
  counters_.jobs_closed.add();
  SLIME_INFO("job %u: closed by its workers", request.job.job);
  jobs_.remove(request.job.job);
  return control::Done{};
}

// An operator names a job by its number alone; a worker by its id and the generation that it has
// seen, so that of many workers only the first changes anything.
Message Controller::on(const control::Fence& request) {
  Job* const of_number = jobs_.find(request.job.job, caller_);
  Job* const job = request.by_operator ? of_number : jobs_.find(request.job, caller_);
  if (job == nullptr) {
    return Refused{Refusal::kNoJob, "there is no job " + std::to_string(request.job.job) +
                                        (of_number != nullptr ? " of that id" : "")};
  }
  if (!request.by_operator && job->ref.generation != request.job.generation) {
    return JobState{State::kFenced, job->ref.generation};
  }
  return jobs_.fence(*job);
}

Message Controller::on(const control::Report& request) {
  std::string text = report_json(*this, request.counters);
  if (text.size() > control::kMaxAnswerBytes) {
    return Refused{Refusal::kInternal, "the report is longer than a message; ask without counters"};
  }
  return control::Text{std::move(text)};
}

Message Controller::on(const control::Drain& request) {
  admission_.set_draining(request.on);
  SLIME_INFO("drain %s, %zu jobs", request.on ? "on" : "off", jobs_.all().size());
  return control::Done{};
}

void Controller::expire(uint64_t now_ns) {
  jobs_.expire(now_ns);
  trees_.expire(now_ns);
}

uint64_t Controller::next_expiry_ns() const {
  return std::min(jobs_.next_expiry_ns(), trees_.next_expiry_ns());
}

}  // namespace slime::net
