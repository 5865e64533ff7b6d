#include "switch/protocol/switch_connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace slime {

using control::Message;
using control::Refusal;
using control::Refused;
using control::Type;

namespace {

Status give(Error* error, Error what) {
  *error = std::move(what);
  return error->status;
}

Type answer_to(Type request) {
  switch (request) {
    case Type::kCreateJob:
    case Type::kJoinTree:
      return Type::kJobGrant;
    case Type::kHeartbeat:
    case Type::kFence:
      return Type::kJobState;
    case Type::kReport:
      return Type::kText;
    default:
      return Type::kDone;
  }
}

// The status and the advice that a refusal becomes at the client.
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

Status SwitchConnection::begin(uint64_t timeout_ns, Error* error) {
  if (!who_.key.empty()) {
    if (auto loaded = load_hmac(); !loaded) return give(error, std::move(loaded.error()));
  }
  deadline_ns_ = clock_.now_ns() + timeout_ns;
  const Status status = connect(error);
  return status == Status::kAgain ? Status::kOk : status;
}

// The address that answers, or is tried at present.
std::string SwitchConnection::name() const {
  const SocketAddress& peer = dialer_.peer();
  return "switch " + (peer.port() != 0 ? peer : first_).to_string();
}

uint64_t SwitchConnection::due_ns() const {
  if (phase_ == Phase::kConnecting) return std::min(deadline_ns_, dialer_.due_ns());
  if (phase_ != Phase::kGreeting) return deadline_ns_;
  return std::min(deadline_ns_, greeting_since_ns_ + greeting_limit_ns_);
}

short SwitchConnection::events() const {
  if (phase_ == Phase::kConnecting || sent_ < output_.size()) return POLLIN | POLLOUT;
  return POLLIN;
}

Status SwitchConnection::post(const Message& request, uint64_t timeout_ns, Error* error) {
  if (phase_ == Phase::kFailed) return give(error, failure_);
  if (asked_) return Status::kAgain;
  request_ = request;
  request_timeout_ns_ = timeout_ns;
  asked_ = true;
  if (phase_ == Phase::kReady) {
    output_.clear();
    deadline_ns_ = clock_.now_ns() + timeout_ns;
  }
  return Status::kOk;
}

Status SwitchConnection::progress(Error* error) {
  if (phase_ == Phase::kFailed) return give(error, failure_);
  // The time is read before the socket: after a pause of this process, what has come by now is
  // looked at before a time-out is reported.
  const uint64_t now_ns = clock_.now_ns();
  Status status = step(error);
  if (status == Status::kAgain && now_ns < deadline_ns_ && is_stuck(now_ns, error)) {
    status = error->status;
  }
  if (status != Status::kOk && status != Status::kAgain) status = reconnect(error);
  if (status == Status::kAgain && now_ns >= deadline_ns_) status = give(error, timeout_error());
  if (status != Status::kOk && status != Status::kAgain) {
    phase_ = Phase::kFailed;
    failure_ = *error;
    dialer_.fd().reset();
  }
  return status;
}

// Goes through the phases as far as the socket allows. An error that does not begin with the switch
// gets its name here, once for all phases.
Status SwitchConnection::step(Error* error) {
  Status status = Status::kOk;
  if (phase_ == Phase::kConnecting) {
    status = connect(error);
    if (status == Status::kOk) status = greet(error);
  }
  if (status == Status::kOk && phase_ == Phase::kGreeting) status = take_challenge(error);
  if (status == Status::kOk && phase_ == Phase::kReady && asked_) status = exchange(error);
  if (status != Status::kOk && status != Status::kAgain && !error->what.starts_with("switch ")) {
    error->what = name() + ": " + error->what;
  }
  return status;
}

Status SwitchConnection::connect(Error* error) {
  const Status status = dialer_.progress(clock_.now_ns(), error);
  if (status == Status::kOk || status == Status::kAgain) return status;
  return give(error,
              make_error(status, error->code, "%s: %s", name().c_str(), error->what.c_str()));
}

// A greeting that does not come is asked for over another connection: packets of this one may have
// been lost until the kernel pauses for long, or something on the path may have forgotten it. A
// switch that is only slow gets twice the time then.
bool SwitchConnection::is_stuck(uint64_t now_ns, Error* error) {
  if (phase_ != Phase::kGreeting || now_ns < greeting_since_ns_ + greeting_limit_ns_) return false;
  greeting_limit_ns_ *= 2;
  *error = make_error(Status::kTimeout, ETIMEDOUT, "%s did not greet", name().c_str());
  return true;
}

// A switch with more callers than places resets the connections of some before it has read their
// requests, and a network may break a connection, so such a request is sent again over a new one.
// After the first answer that is no longer safe: the switch may have carried the request out before
// the connection broke.
Status SwitchConnection::reconnect(Error* error) {
  const Status status = answered_ ? error->status : dialer_.again(clock_.now_ns(), error);
  if (status != Status::kAgain) return status;
  phase_ = Phase::kConnecting;
  output_.clear();
  sent_ = 0;
  sequence_ = 0;
  signer_ = {};
  reader_.next();
  return status;
}

Status SwitchConnection::greet(Error* error) {
  const auto nonce = random_nonce();
  if (!nonce) return give(error, nonce.error());
  nonce_ = *nonce;
  output_ = encode(control::Hello{nonce_, who_.tenant}, 0);
  sent_ = 0;
  phase_ = Phase::kGreeting;
  greeting_since_ns_ = clock_.now_ns();
  if (auto fast = set_nodelay(dialer_.fd()); !fast) return give(error, fast.error());
  return Status::kOk;
}

Status SwitchConnection::take_challenge(Error* error) {
  const Status status = send_and_receive(error);
  if (status != Status::kOk) return status;
  const auto* challenge = std::get_if<control::Challenge>(&answer_);
  if (challenge == nullptr || challenge->key_wanted == who_.key.empty()) {
    const char* what = challenge == nullptr ? "greets with another message than a challenge"
                       : who_.key.empty()
                           ? "wants a key and none is given here; name its key file: "
                             "NCCL_SLIME_SWITCH_KEY_FILE for ranks, --key-file for "
                             "slime-switchctl, parent.key_file for a switch below it"
                           : "has no key, and one is configured here; give the switch the key "
                             "(control.key_file), or name none here";
    return give(error, make_error(challenge == nullptr ? Status::kRemote : Status::kConfig, 0,
                                  "%s %s", name().c_str(), what));
  }
  signer_ = control::Signer(who_.key, who_.tenant, nonce_, challenge->nonce);
  phase_ = Phase::kReady;
  output_.clear();
  if (asked_) deadline_ns_ = clock_.now_ns() + request_timeout_ns_;
  return Status::kOk;
}

// Sends the request if it is not sent yet, and looks for the answer.
Status SwitchConnection::exchange(Error* error) {
  if (output_.empty()) {
    output_ = encode(request_, ++sequence_);
    sent_ = 0;
    if (auto done = signer_.sign(control::Direction::kRequest, output_); !done) {
      return give(error, done.error());
    }
  }
  const Status status = send_and_receive(error);
  if (status != Status::kOk) return status;
  asked_ = false;
  answered_ = true;
  return Status::kOk;
}

// kOk: all of output_ is sent, and answer_ is the answer. A switch that turns a client away sends
// the reason before it closes. So where sending fails, what has arrived is read first, and a
// refusal in it is the error.
Status SwitchConnection::send_and_receive(Error* error) {
  Error other;
  Status status = send_message(dialer_.fd(), output_, &sent_, error);
  if (status == Status::kOk) {
    status = reader_.read(dialer_.fd(), error);
    if (status != Status::kOk) return status;
  } else if (status == Status::kAgain || reader_.read(dialer_.fd(), &other) != Status::kOk ||
             reader_.header().type != Type::kRefused) {
    return status;
  }
  status = take_frame(error);
  if (status == Status::kOk) reader_.next();
  return status;
}

Status SwitchConnection::take_frame(Error* error) {
  auto message = control::decode_payload(reader_.header().type, reader_.payload());
  if (!message) return give(error, std::move(message.error()));
  answer_ = std::move(*message);
  return check_answer(error);
}

Status SwitchConnection::check_answer(Error* error) const {
  const bool ready = phase_ == Phase::kReady;
  const Type asked = ready ? control::type_of(request_) : Type::kHello;
  const auto genuine = ready ? signer_.check(control::Direction::kAnswer, reader_.frame())
                             : Result<bool>(reader_.header().type == Type::kChallenge);
  if (!genuine) return give(error, genuine.error());
  const bool in_turn = reader_.header().sequence == sequence_;
  if (const auto* refused = std::get_if<Refused>(&answer_);
      refused != nullptr && !(ready && *genuine && in_turn)) {
    // A switch that has another key, or did not accept our sequence number, cannot sign its refusal
    // in a way that we accept. The refusal is shown all the same: it ends the connection, which an
    // attacker between the two could also do by cutting it.
    return give(error, error_of(*refused, asked));
  }
  if (!*genuine) {
    return give(error, make_error(Status::kConfig, 0,
                                  "%s: its answer is not signed with our key; both must have the "
                                  "same key file, and nothing may change the bytes between",
                                  name().c_str()));
  }
  const Type found = reader_.header().type;
  // The answer to a part of a tree may be that other leaves are still missing.
  const bool fits = found == (ready ? answer_to(asked) : Type::kChallenge) ||
                    found == Type::kRefused ||
                    (found == Type::kTreeWait && asked == Type::kJoinTree);
  if (fits && in_turn) return Status::kOk;
  return give(
      error, make_error(Status::kRemote, 0, "%s: message \"%s\", number %u, is no answer to \"%s\"",
                        name().c_str(), control::name_of(found), reader_.header().sequence,
                        control::name_of(asked)));
}

Error SwitchConnection::timeout_error() const {
  if (phase_ != Phase::kReady) {
    const std::string& last = dialer_.last_failure();
    return make_error(Status::kTimeout, 0,
                      "%s did not %s in time; is slime-switchd running there, is this the address "
                      "of its control channel, and does a firewall let TCP through?%s%s",
                      name().c_str(),
                      phase_ == Phase::kConnecting ? "accept the connection" : "greet",
                      last.empty() ? "" : " The last failure: ", last.c_str());
  }
  return make_error(Status::kTimeout, 0,
                    "%s was asked to %s and did not answer in time; look at its log, and at "
                    "slime-switchctl stats",
                    name().c_str(), control::name_of(control::type_of(request_)));
}

Error SwitchConnection::error_of(const Refused& refused, Type asked) const {
  const Meaning meaning = meaning_of(refused.why);
  return make_error(meaning.status, static_cast<int>(refused.why),
                    "%s was asked to %s and refused (%s): %s; %s", name().c_str(),
                    control::name_of(asked), control::name_of(refused.why), refused.text.c_str(),
                    meaning.advice);
}

}  // namespace slime
