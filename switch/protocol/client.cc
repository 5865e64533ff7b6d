#include "switch/protocol/client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "settings/times.h"

namespace slime {

using control::Message;
using control::Refusal;
using control::Refused;
using control::Type;

namespace {

constexpr int kTreePauseMs = 10;
constexpr uint64_t kMaxPollMs = 1000;

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

// What a refusal means to whoever asked.
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

// The part that never waits.

Result<std::unique_ptr<SwitchClient>> SwitchClient::start(const SocketAddress& address,
                                                          const Credentials& who,
                                                          uint64_t timeout_ns, const Clock& clock) {
  if (!who.key.empty()) {
    if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  }
  std::unique_ptr<SwitchClient> client(new SwitchClient(address, who, clock));
  Error error;
  if (client->connect(&error) != Status::kAgain) return fail(std::move(error));
  client->deadline_ns_ = clock.now_ns() + timeout_ns;
  return client;
}

short SwitchClient::events() const {
  if (phase_ == Phase::kConnecting || sent_ < output_.size()) return POLLIN | POLLOUT;
  return POLLIN;
}

Status SwitchClient::post(const Message& request, uint64_t timeout_ns, Error* error) {
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

Status SwitchClient::progress(Error* error) {
  if (phase_ == Phase::kFailed) return give(error, failure_);
  // The time is read before the socket: after a pause of this process, what has come by now is
  // looked at before a time-out is reported.
  const uint64_t now_ns = clock_.now_ns();
  Status status = step(error);
  if (status == Status::kRemote && is_abort(*error)) status = reconnect(error);
  if (status == Status::kAgain && now_ns >= deadline_ns_) status = give(error, timeout_error());
  if (status != Status::kOk && status != Status::kAgain) {
    phase_ = Phase::kFailed;
    failure_ = *error;
    fd_.reset();
  }
  return status;
}

// One state after the other, as far as it goes.
Status SwitchClient::step(Error* error) {
  Status status = Status::kOk;
  if (phase_ == Phase::kConnecting) {
    status = finish_connect(fd_, address_, error);
    if (status == Status::kOk) status = greet(error);
  }
  if (status == Status::kOk && phase_ == Phase::kGreeting) status = take_challenge(error);
  if (status == Status::kOk && phase_ == Phase::kReady && asked_) status = exchange(error);
  if (status != Status::kOk && status != Status::kAgain && !error->what.starts_with("switch ")) {
    error->what = name() + ": " + error->what;
  }
  return status;
}

// kAgain: the connection is being made.
Status SwitchClient::connect(Error* error) {
  auto fd = start_connect(address_);
  if (!fd) {
    return give(error, make_error(fd.error().status, fd.error().code, "%s: %s", name().c_str(),
                                  fd.error().what.c_str()));
  }
  fd_ = std::move(*fd);
  return Status::kAgain;
}

// A switch with more visitors than places resets the connections of some, before it has read what
// they asked. Once it has answered, a request may have been carried out, and is not repeated here.
Status SwitchClient::reconnect(Error* error) {
  if (answered_ || ++starts_ > kMaxStarts) return error->status;
  phase_ = Phase::kConnecting;
  output_.clear();
  sent_ = 0;
  sequence_ = 0;
  signer_ = {};
  reader_.next();
  return connect(error);
}

Status SwitchClient::greet(Error* error) {
  const auto nonce = random_nonce();
  if (!nonce) return give(error, nonce.error());
  nonce_ = *nonce;
  output_ = encode(control::Hello{nonce_, who_.tenant}, 0);
  sent_ = 0;
  phase_ = Phase::kGreeting;
  if (auto fast = set_nodelay(fd_); !fast) return give(error, fast.error());
  return Status::kOk;
}

Status SwitchClient::take_challenge(Error* error) {
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
Status SwitchClient::exchange(Error* error) {
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

// kOk: all of output_ is sent, and answer_ is what came for it. A switch that turned us away said
// why before it closed, so where sending fails, a refusal is looked for first.
Status SwitchClient::send_and_receive(Error* error) {
  Error other;
  Status status = send_message(fd_, output_, &sent_, error);
  if (status == Status::kOk) {
    status = reader_.read(fd_, error);
    if (status != Status::kOk) return status;
  } else if (status == Status::kAgain || reader_.read(fd_, &other) != Status::kOk ||
             reader_.header().type != Type::kRefused) {
    return status;
  }
  status = take_frame(error);
  if (status == Status::kOk) reader_.next();
  return status;
}

Status SwitchClient::take_frame(Error* error) {
  auto message = control::decode_payload(reader_.header().type, reader_.payload());
  if (!message) return give(error, std::move(message.error()));
  answer_ = std::move(*message);
  return check_answer(error);
}

Status SwitchClient::check_answer(Error* error) const {
  const bool ready = phase_ == Phase::kReady;
  const Type asked = ready ? control::type_of(request_) : Type::kHello;
  const auto genuine = ready ? signer_.check(control::Direction::kAnswer, reader_.frame())
                             : Result<bool>(reader_.header().type == Type::kChallenge);
  if (!genuine) return give(error, genuine.error());
  const bool in_turn = reader_.header().sequence == sequence_;
  if (const auto* refused = std::get_if<Refused>(&answer_);
      refused != nullptr && !(ready && *genuine && in_turn)) {
    // Who cannot sign, or did not understand our number, can still tell us so. It ends here either
    // way, so a stranger in between can do no more with this than by cutting the connection.
    return give(error, error_of(*refused, asked));
  }
  if (!*genuine) {
    return give(error, make_error(Status::kConfig, 0,
                                  "%s: its answer is not signed with our key; both must have the "
                                  "same key file, and nothing may change the bytes between",
                                  name().c_str()));
  }
  const Type found = reader_.header().type;
  // Of a tree, a switch may say that it is not complete yet.
  const bool fits = found == (ready ? answer_to(asked) : Type::kChallenge) ||
                    found == Type::kRefused ||
                    (found == Type::kTreeWait && asked == Type::kJoinTree);
  if (fits && in_turn) return Status::kOk;
  return give(
      error, make_error(Status::kRemote, 0, "%s: message \"%s\", number %u, is no answer to \"%s\"",
                        name().c_str(), control::name_of(found), reader_.header().sequence,
                        control::name_of(asked)));
}

Error SwitchClient::timeout_error() const {
  if (phase_ != Phase::kReady) {
    return make_error(Status::kTimeout, 0,
                      "%s did not %s in time; is slime-switchd running there, is this the address "
                      "of its control channel, and does a firewall let TCP through?",
                      name().c_str(),
                      phase_ == Phase::kConnecting ? "accept the connection" : "greet");
  }
  return make_error(Status::kTimeout, 0,
                    "%s was asked to %s and did not answer in time; look at its log, and at "
                    "slime-switchctl stats",
                    name().c_str(), control::name_of(control::type_of(request_)));
}

Error SwitchClient::error_of(const Refused& refused, Type asked) const {
  const Meaning meaning = meaning_of(refused.why);
  return make_error(meaning.status, static_cast<int>(refused.why),
                    "%s was asked to %s and refused (%s): %s; %s", name().c_str(),
                    control::name_of(asked), control::name_of(refused.why), refused.text.c_str(),
                    meaning.advice);
}

// The calls that wait.

// Until nothing is under way, or it failed; progress() knows the deadline.
Status SwitchClient::wait(Error* error) {
  for (;;) {
    const Status status = progress(error);
    if (status != Status::kAgain) return status;
    const uint64_t now = clock_.now_ns();
    const uint64_t left_ns = deadline_ns_ > now ? deadline_ns_ - now : 0;
    pollfd ready{fd_.get(), events(), 0};
    const auto left_ms = std::min(left_ns / 1'000'000 + 1, kMaxPollMs);
    if (poll(&ready, 1, static_cast<int>(left_ms)) < 0 && errno != EINTR) {
      return give(error, system_error(errno, "poll for %s", name().c_str()));
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

// Any answer but a refusal, which is an error.
Result<Message> SwitchClient::ask(const Message& request, uint64_t timeout_ns) {
  Error error;
  Status status = post(request, timeout_ns, &error);
  if (status == Status::kAgain) {
    return fail(
        make_error(Status::kInvalid, 0, "%s: another request is under way", name().c_str()));
  }
  if (status == Status::kOk) status = wait(&error);
  if (status != Status::kOk) return fail(std::move(error));
  const auto* refused = std::get_if<Refused>(&answer_);
  if (refused != nullptr) return fail(error_of(*refused, control::type_of(request)));
  return answer_;
}

template <typename Answer>
Result<Answer> SwitchClient::ask_for(const Message& request, uint64_t timeout_ns) {
  auto answer = ask(request, timeout_ns);
  if (!answer) return fail(std::move(answer.error()));
  return std::get<Answer>(std::move(*answer));  // progress() lets no other type through
}

Result<control::JobGrant> SwitchClient::create_job(const control::CreateJob& wanted,
                                                   uint64_t timeout_ns) {
  return ask_for<control::JobGrant>(wanted, timeout_ns);
}

Result<control::JobGrant> SwitchClient::join_tree(const control::JoinTree& wanted,
                                                  uint64_t timeout_ns) {
  const uint64_t end_ns = clock_.now_ns() + timeout_ns;
  for (;;) {
    const auto answer = ask(wanted, times::kTreeQuestion);
    if (!answer) return fail(answer.error());
    if (const auto* grant = std::get_if<control::JobGrant>(&*answer)) return *grant;
    if (clock_.now_ns() >= end_ns) return fail(incomplete(wanted));
    (void)poll(nullptr, 0, kTreePauseMs);
  }
}

Error SwitchClient::incomplete(const control::JoinTree& wanted) const {
  const auto* wait = std::get_if<control::TreeWait>(&answer_);
  const std::string who = wait != nullptr ? control::branch_list(wait->missing) : "";
  return make_error(Status::kTimeout, 0,
                    "%s: the tree of %u switches was not complete in time, branch %s is missing; "
                    "look at the logs of the leaves, and of their root",
                    name().c_str(), wanted.branches, who.empty() ? "?" : who.c_str());
}

Result<control::JobState> SwitchClient::heartbeat(const control::JobRef& job, uint64_t timeout_ns) {
  return ask_for<control::JobState>(control::Heartbeat{job}, timeout_ns);
}

Result<void> SwitchClient::close_job(const control::JobRef& job, uint64_t timeout_ns) {
  return ask_for<control::Done>(control::CloseJob{job}, timeout_ns).map([](control::Done) {});
}

Result<control::JobState> SwitchClient::fence_number(uint16_t job, uint64_t timeout_ns) {
  return ask_for<control::JobState>(control::Fence{{{}, job, 0}, true}, timeout_ns);
}

Result<std::string> SwitchClient::report(bool counters, uint64_t timeout_ns) {
  return ask_for<control::Text>(control::Report{counters}, timeout_ns)
      .map([](control::Text&& text) { return std::move(text.text); });
}

Result<void> SwitchClient::drain(bool on, uint64_t timeout_ns) {
  return ask_for<control::Done>(control::Drain{on}, timeout_ns).map([](control::Done) {});
}

}  // namespace slime
