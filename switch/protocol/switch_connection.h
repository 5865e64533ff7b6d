// A connection to a switch's control channel, for workers and tools. Nothing here waits; client.h
// adds calls that do. One request at a time.
//
//     kConnecting ──connected, Hello sent──▶ kGreeting ──Challenge──▶ kReady ◀──▶ a request
//          ▲                                     │                      │         is under way
//          └──── the connection broke or is stuck, and no request was answered ────┘
//     any of them ──error or deadline──▶ kFailed
//
// A request may be posted in any state but kFailed, and is sent when the connection is ready.
// kFailed is final, and the error stays: start another one. Refusals are answers; the connection
// goes on unless they say otherwise.
//
// Invariants: output_[sent_..] is what is still to be sent, and empty in kReady means that the
// request is not encoded yet. Sequence numbers count the requests of this connection.
// Thread rules: one thread.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/net/dialer.h"
#include "settings/times.h"
#include "switch/protocol/frames.h"

namespace slime {

// In whose name requests are made: a tenant with its key or, without a name, an operator with the
// switch's own key.
struct Credentials {
  // No key: SecretKey(), for a switch that has none.
  Credentials(SecretKey own_key = {}, std::string own_tenant = {})  // NOLINT: a key is one
      : key(own_key), tenant(std::move(own_tenant)) {}
  SecretKey key;
  std::string tenant;
};

class SwitchConnection {
 public:
  SwitchConnection(const SwitchConnection&) = delete;
  SwitchConnection& operator=(const SwitchConnection&) = delete;

  // May be called before the connection stands. kAgain: another request is under way.
  Status post(const control::Message& request, uint64_t timeout_ns, Error* error);
  // kOk: connected, and nothing is under way; the answer, if there was a request, is answer().
  Status progress(Error* error);
  const control::Message& answer() const { return answer_; }
  int descriptor() const { return dialer_.fd().get(); }  // for poll(2), with events()
  short events() const;
  uint64_t due_ns() const;  // progress() is to be called by then, also without an event

  // The error for a refusal, with what to try.
  Error error_of(const control::Refused& refused, control::Type asked) const;

 protected:
  SwitchConnection(const Addresses& addresses, const Credentials& who, const Clock& clock)
      : clock_(clock),
        first_(addresses.front()),
        who_(who),
        dialer_(addresses, {.pause_ns = times::kSwitchRedial}) {}
  ~SwitchConnection() = default;

  // Begins to connect; `timeout_ns` is for that and the greeting together.
  Status begin(uint64_t timeout_ns, Error* error);
  std::string name() const;

  const Clock& clock_;

 private:
  enum class Phase : uint8_t { kConnecting, kGreeting, kReady, kFailed };

  Status step(Error* error);
  Status connect(Error* error);
  bool is_stuck(uint64_t now_ns, Error* error);
  Status reconnect(Error* error);
  Status greet(Error* error);
  Status take_challenge(Error* error);
  Status exchange(Error* error);
  Status send_and_receive(Error* error);
  Status take_frame(Error* error);
  Status check_answer(Error* error) const;
  Error timeout_error() const;

  const SocketAddress first_;  // of its addresses
  const Credentials who_;
  Dialer dialer_;
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
  uint64_t greeting_since_ns_ = 0;
  uint64_t greeting_limit_ns_ = times::kGreetingTry;  // doubled with each try
  bool asked_ = false;                                // a request waits to be sent or answered
  control::Message request_;
  control::Message answer_;
  uint32_t sequence_ = 0;
};

}  // namespace slime
