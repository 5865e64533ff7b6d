// The client's side of the control channel: connecting, greeting, one request at a time.
#include "switch/protocol/client.h"

#include <poll.h>

#include <algorithm>

namespace slime {

using control::Message;
using control::Refused;
using control::Type;

namespace {

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

}  // namespace

Result<std::unique_ptr<SwitchClient>> SwitchClient::start(const SocketAddress& address,
                                                          const Credentials& who,
                                                          uint64_t timeout_ns, const Clock& clock) {
  if (!who.key.empty()) {
    if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  }
  std::unique_ptr<SwitchClient> client(new SwitchClient(address, who, clock));
  auto fd = start_connect(address);
  if (!fd) {
    fd.error().what = client->name() + ": " + fd.error().what;
    return fail(std::move(fd.error()));
  }
  client->fd_ = std::move(*fd);
  client->deadline_ns_ = clock.now_ns() + timeout_ns;
  return client;
}

short SwitchClient::events() const {
  if (phase_ == Phase::kConnecting || sent_ < output_.size()) return POLLIN | POLLOUT;
  return POLLIN;
}

Status SwitchClient::post(const Message& request, uint64_t timeout_ns, Error* error) {
  if (phase_ == Phase::kFailed) {
    *error = failure_;
    return failure_.status;
  }
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
  const uint64_t now_ns = clock_.now_ns();  // before the look: a held up process looks once more
  Status status = step(error);
  if (status == Status::kRemote && is_abort(*error)) status = start_again(error);
  if (status == Status::kAgain && now_ns >= deadline_ns_) {
    *error = late();
    status = Status::kTimeout;
  }
  if (status != Status::kOk && status != Status::kAgain && phase_ != Phase::kFailed) {
    phase_ = Phase::kFailed;
    failure_ = *error;
    fd_.reset();
  }
  return status;
}

// A switch with more visitors than places resets the connections of some, before it has read what
// they asked. So an answer must not have come yet.
Status SwitchClient::start_again(Error* error) {
  if (answered_ || phase_ == Phase::kFailed || ++starts_ > kMaxStarts) return error->status;
  auto fd = start_connect(address_);
  if (!fd) {
    *error = make_error(fd.error().status, fd.error().code, "%s: %s", name().c_str(),
                        fd.error().what.c_str());
    return error->status;
  }
  fd_ = std::move(*fd);
  phase_ = Phase::kConnecting;
  output_.clear();
  sent_ = 0;
  sequence_ = 0;
  signer_ = {};
  reader_.next();
  return Status::kAgain;
}

Error SwitchClient::late() const {
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

Status SwitchClient::step(Error* error) {
  Status status = Status::kOk;
  if (phase_ == Phase::kFailed) {
    *error = failure_;
    return failure_.status;
  }
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

Status SwitchClient::greet(Error* error) {
  const auto nonce = random_nonce();
  if (!nonce) {
    *error = nonce.error();
    return error->status;
  }
  nonce_ = *nonce;
  output_ = encode(control::Hello{nonce_, who_.tenant}, 0);
  sent_ = 0;
  phase_ = Phase::kGreeting;
  if (auto fast = set_nodelay(fd_); !fast) {
    *error = fast.error();
    return error->status;
  }
  return Status::kOk;
}

Status SwitchClient::take_challenge(Error* error) {
  Status status = send_message(fd_, output_, &sent_, error);
  if (status != Status::kOk) return salvage(status, error);
  status = reader_.read(fd_, error);
  if (status != Status::kOk) return status;
  status = take_frame(error);
  if (status != Status::kOk) return status;
  const auto* challenge = std::get_if<control::Challenge>(&answer_);
  if (challenge == nullptr || challenge->key_wanted == who_.key.empty()) {
    *error = make_error(
        challenge == nullptr ? Status::kRemote : Status::kConfig, 0, "%s %s", name().c_str(),
        challenge == nullptr ? "greets with another message than a challenge"
        : who_.key.empty()   ? "wants a key and none is given here; name its key file: "
                               "NCCL_SLIME_SWITCH_KEY_FILE for ranks, --key-file for "
                               "slime-switchctl, parent.key_file for a switch below it"
                             : "has no key, and one is configured here; give the switch the key "
                               "(control.key_file), or name none here");
    return error->status;
  }
  signer_ = control::Signer(who_.key, who_.tenant, nonce_, challenge->nonce);
  phase_ = Phase::kReady;
  output_.clear();
  reader_.next();
  if (asked_) deadline_ns_ = clock_.now_ns() + request_timeout_ns_;
  return Status::kOk;
}

// Sends the request if it is not sent yet, and looks for the answer.
Status SwitchClient::exchange(Error* error) {
  if (output_.empty()) {
    output_ = encode(request_, ++sequence_);
    sent_ = 0;
    if (auto done = signer_.sign(control::Direction::kRequest, output_); !done) {
      *error = done.error();
      return error->status;
    }
  }
  Status status = send_message(fd_, output_, &sent_, error);
  if (status != Status::kOk) return salvage(status, error);
  status = reader_.read(fd_, error);
  if (status != Status::kOk) return status;
  status = take_frame(error);
  if (status != Status::kOk) return status;
  asked_ = false;
  answered_ = true;
  reader_.next();
  return Status::kOk;
}

// A switch that turned us away said why before it closed.
Status SwitchClient::salvage(Status status, Error* error) {
  Error other;
  if (status == Status::kAgain || reader_.read(fd_, &other) != Status::kOk) return status;
  if (reader_.header().type != Type::kRefused) return status;
  return take_frame(error);
}

Status SwitchClient::take_frame(Error* error) {
  auto message = control::decode_payload(reader_.header().type, reader_.payload());
  if (!message) {
    *error = std::move(message.error());
    return error->status;
  }
  answer_ = std::move(*message);
  return check_answer(error);
}

Status SwitchClient::check_answer(Error* error) {
  const bool ready = phase_ == Phase::kReady;
  const auto genuine = ready ? signer_.check(control::Direction::kAnswer, reader_.frame())
                             : Result<bool>(reader_.header().type == Type::kChallenge);
  if (!genuine) {
    *error = genuine.error();
    return error->status;
  }
  const bool in_turn = reader_.header().sequence == sequence_;
  if (const auto* refused = std::get_if<Refused>(&answer_);
      refused != nullptr && !(ready && *genuine && in_turn)) {
    // Who cannot sign, or did not understand our number, can still tell us so. It ends here either
    // way, so a stranger in between can do no more with this than by cutting the connection.
    *error = error_of(*refused, ready ? control::type_of(request_) : Type::kHello);
    return error->status;
  }
  if (!*genuine) {
    *error = make_error(Status::kConfig, 0,
                        "%s: its answer is not signed with our key; both must have the same key "
                        "file, and nothing may change the bytes between",
                        name().c_str());
    return error->status;
  }
  const Type expected = ready ? answer_to(control::type_of(request_)) : Type::kChallenge;
  const Type found = reader_.header().type;
  // Of a tree, a switch may say that it is not complete yet.
  const bool waits =
      found == Type::kTreeWait && ready && control::type_of(request_) == Type::kJoinTree;
  if ((found != expected && found != Type::kRefused && !waits) || !in_turn) {
    *error = make_error(Status::kRemote, 0, "%s: message \"%s\", number %u, is no answer to \"%s\"",
                        name().c_str(), control::name_of(found), reader_.header().sequence,
                        control::name_of(ready ? control::type_of(request_) : Type::kHello));
    return error->status;
  }
  return Status::kOk;
}

}  // namespace slime
