// A client of a switch's control channel: a connection (switch_connection.h) with a call for each
// request. All calls but start() wait, until their deadline.
//
// States, invariants and thread rules: those of the connection.
#pragma once

#include <memory>
#include <string>

#include "switch/protocol/switch_connection.h"

namespace slime {

class SwitchClient final : public SwitchConnection {
 public:
  // `timeout_ns` is for connecting and the greeting together.
  static Result<std::unique_ptr<SwitchClient>> start(const Addresses& addresses,
                                                     const Credentials& who, uint64_t timeout_ns,
                                                     const Clock& clock = SteadyClock::instance());

  // From here on: waits. A refusal is an error whose code is the control::Refusal.
  static Result<std::unique_ptr<SwitchClient>> open(const Addresses& addresses,
                                                    const Credentials& who, uint64_t timeout_ns);
  Result<control::JobGrant> create_job(const control::CreateJob& wanted, uint64_t timeout_ns) {
    return ask_for<control::JobGrant>(wanted, timeout_ns);
  }
  // Asks again until the tree is complete.
  Result<control::JobGrant> join_tree(const control::JoinTree& wanted, uint64_t timeout_ns);
  Result<control::JobState> heartbeat(const control::JobRef& job, uint64_t timeout_ns) {
    return ask_for<control::JobState>(control::Heartbeat{job}, timeout_ns);
  }
  Result<control::Done> close_job(const control::JobRef& job, uint64_t timeout_ns) {
    return ask_for<control::Done>(control::CloseJob{job}, timeout_ns);
  }
  // Whatever generation the job is in: for operators.
  Result<control::JobState> fence_number(uint16_t job, uint64_t timeout_ns) {
    return ask_for<control::JobState>(control::Fence{{{}, job, 0}, true}, timeout_ns);
  }
  Result<control::Text> report(bool counters, uint64_t timeout_ns) {
    return ask_for<control::Text>(control::Report{counters}, timeout_ns);
  }
  Result<control::Done> drain(bool on, uint64_t timeout_ns) {
    return ask_for<control::Done>(control::Drain{on}, timeout_ns);
  }

 private:
  using SwitchConnection::SwitchConnection;

  Error incomplete(const control::JoinTree& wanted) const;
  Status wait(Error* error);
  Result<control::Message> ask(const control::Message& request, uint64_t timeout_ns);
  template <typename Answer>
  Result<Answer> ask_for(const control::Message& request, uint64_t timeout_ns) {
    auto answer = ask(request, timeout_ns);
    if (!answer) return fail(std::move(answer.error()));
    return std::get<Answer>(std::move(*answer));  // progress() lets no other type through
  }
};

}  // namespace slime
