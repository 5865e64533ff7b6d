#include "collnet/reattachment.h"

#include <slime/log.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace slime {
namespace {

constexpr uint64_t kTimeoutNs = 2'000'000'000;  // of connecting, and of each question
constexpr uint64_t kStepNs = 1'000'000;         // between looks at an answer that is to come

}  // namespace

Reattachment::Reattachment(const LeaseTerms& terms, control::CreateJob wanted, uint64_t pause_ns,
                           uint64_t now_ns)
    : terms_(terms), wanted_(std::move(wanted)), pause_ns_(pause_ns), due_ns_(now_ns + pause_ns) {}

Reattachment::~Reattachment() {
  if (client_ && grant_) (void)client_->close_job(grant_->job, kTimeoutNs);
}

void Reattachment::poll(uint64_t now_ns) {
  if (stage_ == Stage::kDone || now_ns < due_ns_) return;
  const Status status = step();
  if (status == Status::kOk || status == Status::kAgain) {
    due_ns_ = now_ns + kStepNs;
  } else {
    rest(now_ns);
  }
}

Status Reattachment::step() {
  if (stage_ == Stage::kResting) {
    auto client = SwitchClient::start(terms_.address, terms_.key, kTimeoutNs);
    if (!client) return client.error().status;
    client_ = std::move(*client);
    return ask(control::CloseJob{terms_.job}, Stage::kClosing);
  }
  const Status status = client_->progress(&error_);
  if (status != Status::kOk) return status;
  // That it knows no such job is an answer like any other: it was started again.
  if (stage_ == Stage::kClosing) return ask(wanted_, Stage::kCreating);
  return take_answer();
}

Status Reattachment::ask(const control::Message& request, Stage stage) {
  stage_ = stage;
  return client_->post(request, kTimeoutNs, &error_);
}

Status Reattachment::take_answer() {
  if (const auto* const refused = std::get_if<control::Refused>(&client_->answer())) {
    if (!std::exchange(told_, true)) {
      SLIME_INFO("CollNet: the switch is there again, but: %s",
                 client_->error_of(*refused, control::Type::kCreateJob).what.c_str());
    }
    return Status::kRemote;
  }
  const auto* const grant = std::get_if<control::JobGrant>(&client_->answer());
  if (grant == nullptr || grant->slots != wanted_.slots_wanted ||
      grant->lanes != wanted_.lanes_wanted) {
    return Status::kRemote;
  }
  grant_ = *grant;
  stage_ = Stage::kDone;
  return Status::kOk;
}

void Reattachment::rest(uint64_t now_ns) {
  client_.reset();
  stage_ = Stage::kResting;
  pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
  due_ns_ = now_ns + pause_ns_;
}

}  // namespace slime
