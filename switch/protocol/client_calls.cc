// The calls of SwitchClient that wait, and what refusals mean.
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "switch/protocol/client.h"

namespace slime {

using control::Message;
using control::Refusal;
using control::Type;

namespace {

// Of one question. So the end of all is between two questions, and says who is missing.
constexpr uint64_t kTreeQuestionNs = 3'000'000'000;
constexpr int kTreePauseMs = 10;

struct Meaning {
  Status status;
  const char* advice;
};

Meaning meaning_of(Refusal reason) {
  switch (reason) {
    case Refusal::kUnauthorized:
      return {Status::kConfig,
              "use the key file of this switch, and of the tenant that is named "
              "(NCCL_SLIME_SWITCH_TENANT)"};
    case Refusal::kForbidden:
      return {
          Status::kConfig,
          "name the tenant whose key this is (NCCL_SLIME_SWITCH_TENANT), or use the operators' key "
          "(control.key_file of the switch)"};
    case Refusal::kFull:
    case Refusal::kBusy:
      return {Status::kNoMemory, "try again in a moment"};
    case Refusal::kQuota:
    case Refusal::kMemory:
      return {Status::kNoMemory,
              "ask for fewer slots, end another job, or raise the limit in the switch's "
              "configuration"};
    case Refusal::kDraining:
      return {Status::kRemote, "use another switch, or: slime-switchctl drain off"};
    case Refusal::kShape:
      return {Status::kUnsupported, "compare with: slime-switchctl show"};
    case Refusal::kNoJob:
      return {Status::kRemote,
              "it has ended: create another; slime-switchctl show lists those that are there"};
    case Refusal::kInternal:
      return {Status::kRemote, "look at the switch's log"};
    case Refusal::kMalformed:
    case Refusal::kSequence:
      break;
  }
  return {Status::kInvalid, "use the same release at both ends"};
}

}  // namespace

Error SwitchClient::error_of(const control::Refused& refused, Type asked) const {
  const Meaning meaning = meaning_of(refused.why);
  return make_error(meaning.status, static_cast<int>(refused.why),
                    "%s was asked to %s and refused (%s): %s; %s", name().c_str(),
                    control::name_of(asked), control::name_of(refused.why), refused.text.c_str(),
                    meaning.advice);
}

// Until nothing is under way, or it failed; progress() knows the deadline.
Status SwitchClient::wait(Error* error) {
  for (;;) {
    const Status status = progress(error);
    if (status != Status::kAgain) return status;
    const uint64_t now = clock_.now_ns();
    const uint64_t left_ns = deadline_ns_ > now ? deadline_ns_ - now : 0;
    pollfd ready{fd_.get(), events(), 0};
    const auto left_ms = std::min<uint64_t>(left_ns / 1'000'000 + 1, 1000);
    if (poll(&ready, 1, static_cast<int>(left_ms)) < 0 && errno != EINTR) {
      *error = system_error(errno, "poll for %s", name().c_str());
      return error->status;
    }
  }
}

Result<std::unique_ptr<SwitchClient>> SwitchClient::open(const SocketAddress& address,
                                                         const Credentials& who,
                                                         uint64_t timeout_ns) {
  auto client = start(address, who, timeout_ns);
  Error error;
  if (client && (*client)->wait(&error) != Status::kOk) return fail(std::move(error));
  return client;
}

template <typename Answer>
Result<Answer> SwitchClient::ask(const Message& request, uint64_t timeout_ns) {
  Error error;
  Status status = post(request, timeout_ns, &error);
  if (status == Status::kAgain) {
    return fail(
        make_error(Status::kInvalid, 0, "%s: another request is under way", name().c_str()));
  }
  if (status == Status::kOk) status = wait(&error);
  if (status != Status::kOk) return fail(std::move(error));
  if (const auto* refused = std::get_if<control::Refused>(&answer_)) {
    return fail(error_of(*refused, control::type_of(request)));
  }
  return std::get<Answer>(answer_);  // progress() lets no other type through
}

Result<control::JobGrant> SwitchClient::create_job(const control::CreateJob& wanted,
                                                   uint64_t timeout_ns) {
  return ask<control::JobGrant>(wanted, timeout_ns);
}

Result<control::JobGrant> SwitchClient::join_tree(const control::JoinTree& wanted,
                                                  uint64_t timeout_ns) {
  const uint64_t end_ns = clock_.now_ns() + timeout_ns;
  for (;;) {
    Error error;
    Status status = post(wanted, kTreeQuestionNs, &error);
    if (status == Status::kOk) status = wait(&error);
    if (status != Status::kOk) return fail(std::move(error));
    if (const auto* refused = std::get_if<control::Refused>(&answer_)) {
      return fail(error_of(*refused, Type::kJoinTree));
    }
    if (const auto* grant = std::get_if<control::JobGrant>(&answer_)) return *grant;
    if (clock_.now_ns() >= end_ns) return fail(incomplete(wanted));
    (void)poll(nullptr, 0, kTreePauseMs);
  }
}

Error SwitchClient::incomplete(const control::JoinTree& wanted) const {
  const auto* wait = std::get_if<control::TreeWait>(&answer_);
  std::string who;
  for (uint32_t branch = 0; wait != nullptr && branch < wanted.branches; ++branch) {
    if ((wait->missing >> branch & 1) != 0) {
      who += (who.empty() ? "" : ", ") + std::to_string(branch);
    }
  }
  return make_error(Status::kTimeout, 0,
                    "%s: the tree of %u switches was not complete in time, branch %s is missing; "
                    "look at the logs of the leaves, and of their root",
                    name().c_str(), wanted.branches, who.empty() ? "?" : who.c_str());
}

Result<control::JobState> SwitchClient::heartbeat(const control::JobRef& job, uint64_t timeout_ns) {
  return ask<control::JobState>(control::Heartbeat{job}, timeout_ns);
}

Result<void> SwitchClient::close_job(const control::JobRef& job, uint64_t timeout_ns) {
  return ask<control::Done>(control::CloseJob{job}, timeout_ns).map([](control::Done) {});
}

Result<control::JobState> SwitchClient::fence_number(uint16_t job, uint64_t timeout_ns) {
  return ask<control::JobState>(control::Fence{{{}, job, 0}, true}, timeout_ns);
}

Result<std::string> SwitchClient::report(bool counters, uint64_t timeout_ns) {
  auto text = ask<control::Text>(control::Report{counters}, timeout_ns);
  if (!text) return fail(std::move(text.error()));
  return std::move(text->text);
}

Result<void> SwitchClient::drain(bool on, uint64_t timeout_ns) {
  return ask<control::Done>(control::Drain{on}, timeout_ns).map([](control::Done) {});
}

}  // namespace slime
