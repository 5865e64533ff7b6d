// A connection to a switch's control channel, for workers and tools.
//
// Two ways to use one: start() and post(), then progress() whenever there is time, which never
// waits; or open() and the calls below it, which wait until their deadline. One request at a time.
//
//     kConnecting ──connected, Hello sent──▶ kGreeting ──Challenge──▶ kReady ◀──▶ a request
//          ▲                                     │                      │         is under way
//          └──── the switch reset the connection, and has answered nothing yet ────┘
//     any of them ──error or deadline──▶ kFailed
//
// A request may be posted in any state but kFailed, and is sent when the client is ready. kFailed
// is final, and the error stays: start another client. Refusals are answers; the connection goes on
// unless they say otherwise.
//
// Invariants: output_[sent_..] is what is still to be sent, and empty in kReady means that the
// request is not encoded yet. Sequence numbers count the requests of this connection.
// Thread rules: one thread.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "switch/protocol/frames.h"

namespace slime {

// Who asks: a tenant with its key, or, without a name, an operator with the switch's own.
struct Credentials {
  // No key: SecretKey(), for a switch that has none.
  Credentials(SecretKey own_key = {}, std::string own_tenant = {})  // NOLINT: a key is one
      : key(own_key), tenant(std::move(own_tenant)) {}
  SecretKey key;
  std::string tenant;
};

class SwitchClient {
 public:
  // `timeout_ns` is for connecting and the greeting together.
  static Result<std::unique_ptr<SwitchClient>> start(const SocketAddress& address,
                                                     const Credentials& who, uint64_t timeout_ns,
                                                     const Clock& clock = SteadyClock::instance());

  // May be called before the connection stands. kAgain: another request is under way.
  Status post(const control::Message& request, uint64_t timeout_ns, Error* error);
  // kOk: connected, and nothing is under way; the answer, if there was a request, is answer().
  Status progress(Error* error);
  const control::Message& answer() const { return answer_; }
  int descriptor() const { return fd_.get(); }  // for poll(2), with events()
  short events() const;
  uint64_t deadline_ns() const { return deadline_ns_; }

  // From here on: waits. A refusal is an error whose code is the control::Refusal.
  static Result<std::unique_ptr<SwitchClient>> open(const SocketAddress& address,
                                                    const Credentials& who, uint64_t timeout_ns);
  Result<control::JobGrant> create_job(const control::CreateJob& wanted, uint64_t timeout_ns);
  // Asks again until the tree is complete.
  Result<control::JobGrant> join_tree(const control::JoinTree& wanted, uint64_t timeout_ns);
  Result<control::JobState> heartbeat(const control::JobRef& job, uint64_t timeout_ns);
  Result<void> close_job(const control::JobRef& job, uint64_t timeout_ns);
  // Whatever generation the job is in: for operators.
  Result<control::JobState> fence_number(uint16_t job, uint64_t timeout_ns);
  Result<std::string> report(bool counters, uint64_t timeout_ns);
  Result<void> drain(bool on, uint64_t timeout_ns);

  // What a refusal means to whoever asked.
  Error error_of(const control::Refused& refused, control::Type asked) const;

 private:
  enum class Phase : uint8_t { kConnecting, kGreeting, kReady, kFailed };

  SwitchClient(const SocketAddress& address, const Credentials& who, const Clock& clock)
      : address_(address), who_(who), clock_(clock) {}

  static constexpr int kMaxStarts = 8;

  Status step(Error* error);
  Status connect(Error* error);
  Status reconnect(Error* error);
  Status greet(Error* error);
  Status take_challenge(Error* error);
  Status exchange(Error* error);
  Status send_and_receive(Error* error);
  Status take_frame(Error* error);
  Status check_answer(Error* error) const;
  Error timeout_error() const;
  Error incomplete(const control::JoinTree& wanted) const;
  Status wait(Error* error);
  Result<control::Message> ask(const control::Message& request, uint64_t timeout_ns);
  template <typename Answer>
  Result<Answer> ask_for(const control::Message& request, uint64_t timeout_ns);
  std::string name() const { return "switch " + address_.to_string(); }

  const SocketAddress address_;
  const Credentials who_;
  const Clock& clock_;
  Fd fd_;
  Phase phase_ = Phase::kConnecting;
  Error failure_;
  uint64_t deadline_ns_ = 0;
  uint64_t request_timeout_ns_ = 0;

  Nonce nonce_{};
  control::Signer signer_;
  std::vector<std::byte> output_;
  size_t sent_ = 0;
  control::FrameReader reader_{control::kMaxAnswerBytes};

  bool answered_ = false;  // a request, at least once
  int starts_ = 1;         // connections that were tried
  bool asked_ = false;     // a request waits to be sent or answered
  control::Message request_;
  control::Message answer_;
  uint32_t sequence_ = 0;
};

}  // namespace slime
