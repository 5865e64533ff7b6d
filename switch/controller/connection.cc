#include "switch/controller/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "settings/times.h"

namespace slime::net {

using control::Refusal;
using control::Refused;

namespace {

// Requests of one connection in one turn, so that other connections get theirs.
constexpr int kRequestsPerTurn = 16;
constexpr int kClosingReads = 64;

}  // namespace

std::optional<Refused> refuse_stranger(const ServerOptions& options, const SocketAddress& peer) {
  if (options.keys.wanted() || options.allow_unauthenticated || peer.is_loopback()) return {};
  return Refused{Refusal::kUnauthorized,
                 "this switch has no key and therefore takes requests from its own host only, not "
                 "from " +
                     peer.host() +
                     "; give it control.key_file, or control.allow_unauthenticated: true where "
                     "everybody who reaches it may use it"};
}

const char* Connection::late_with() const {
  if (phase_ == Phase::kClosing) return "closing";
  if (wants_to_write()) return "reading an answer";
  if (phase_ == Phase::kGreeting) return "the greeting";
  if (phase_ == Phase::kUnproven) return "its first request";
  return reader_.begun() ? "the rest of a request" : "a sign of life";
}

// Sends what is to be sent, then takes one frame, and so on, until the socket gives or takes no
// more, or it is the turn of others.
bool Connection::advance(Controller& controller) {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    if (phase_ == Phase::kClosing) return discard_input();
    if (!flush(controller.now_ns())) return false;
    if (wants_to_write()) return true;
    if (phase_ == Phase::kClosing) continue;
    const Status status = take_frame(controller);
    if (status == Status::kAgain) return true;
    if (status != Status::kOk && !closing_) return false;
  }
  return true;  // epoll reports the rest again
}

bool Connection::flush(uint64_t now_ns) {
  if (!wants_to_write()) return true;
  Error error;
  const Status status = send_message(fd_, output_, &sent_, &error);
  if (status == Status::kAgain) return true;
  if (status != Status::kOk) return false;
  output_ = {};  // a report's memory goes at once
  sent_ = 0;
  if (closing_) {
    phase_ = Phase::kClosing;
    deadline_ns_ = now_ns + times::kRefusalLinger;
    (void)shutdown(fd_.get(), SHUT_WR);
  } else if (phase_ == Phase::kServing) {
    deadline_ns_ = now_ns + options_.idle_ns;
  }
  return true;
}

// Reads until the peer has closed. To close with bytes unread would reset the connection (RFC 2525,
// 2.17), and the peer might not see why it was refused.
bool Connection::discard_input() {
  std::byte scrap[1024];
  for (int i = 0; i < kClosingReads; ++i) {
    const ssize_t got = recv(fd_.get(), scrap, sizeof scrap, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
  }
  return true;
}

// kOk: a frame was handled, and its answer is in output_. From the first bytes of a request on, the
// peer has request_ns for the rest, however slowly it comes: idle_ns is for the time between
// requests only.
Status Connection::take_frame(Controller& controller) {
  Error error;
  const Status status = reader_.read(fd_, &error);
  if (status == Status::kAgain) {
    if (phase_ == Phase::kServing && reader_.begun() && !request_begun_) {
      request_begun_ = true;
      deadline_ns_ = std::min(deadline_ns_, controller.now_ns() + options_.request_ns);
    }
    return status;
  }
  if (status == Status::kInvalid) {
    reject(Refusal::kMalformed, error.what, controller);
  }
  if (status != Status::kOk) return status;
  request_begun_ = false;
  if (phase_ == Phase::kGreeting) {
    on_hello(controller);
  } else {
    on_request(controller);
  }
  reader_.next();
  return Status::kOk;
}

// A greeting is answered with a challenge, even if there is no such tenant.
void Connection::on_hello(Controller& controller) {
  const auto message = control::decode_payload(reader_.header().type, reader_.payload());
  const auto* hello = message ? std::get_if<control::Hello>(&*message) : nullptr;
  if (hello == nullptr || reader_.header().sequence != 0) {
    return reject(Refusal::kMalformed,
                  message ? "a connection begins with a greeting" : message.error().what,
                  controller);
  }
  if (auto refused = refuse_stranger(options_, peer_)) {
    return reject(refused->why, refused->text, controller);
  }
  const auto nonce = random_nonce();
  if (!nonce) return reject(Refusal::kInternal, nonce.error().what, controller);
  caller_.tenant = hello->tenant;
  if (auto chosen = choose_key(); !chosen) {
    return reject(Refusal::kInternal, chosen.error().what, controller);
  }
  answer(control::Challenge{*nonce, options_.keys.wanted()}, 0);
  signer_ = control::Signer(key_, caller_.tenant, hello->nonce, *nonce);
  phase_ = Phase::kUnproven;  // the deadline stays: a greeting proves nothing
}

// A tenant that does not exist gets a random key. So its requests fail like those with a wrong key,
// and a peer cannot find out which tenants there are.
Result<void> Connection::choose_key() {
  if (const SecretKey* key = options_.keys.of(caller_.tenant)) {
    key_ = *key;
    return {};
  }
  std::array<std::byte, SecretKey::kMinBytes> nobodys;
  if (auto filled = random_bytes(nobodys); !filled) return filled;
  auto key = SecretKey::from_bytes(nobodys);
  if (!key) return fail(std::move(key.error()));
  key_ = *key;
  return {};
}

bool Connection::holds_key_of(const KeyRing& keys) const {
  const SecretKey* key = keys.of(caller_.tenant);
  return phase_ == Phase::kGreeting || (key != nullptr && *key == key_);
}

// Whether the frame that was read is signed with the key of its connection. Rejects it if not.
bool Connection::is_authentic(Controller& controller) {
  const auto genuine = signer_.check(control::Direction::kRequest, reader_.frame());
  if (genuine && *genuine) return true;
  reject(Refusal::kUnauthorized,
         !genuine                  ? genuine.error().what
         : !options_.keys.wanted() ? "the request is signed, and this switch has no key"
         : options_.keys.tenants && !caller_.is_operator()
             ? "the request is not signed with the key of tenant " + caller_.tenant +
                   ", which is the file of that name in control.tenant_keys"
             : "the request is not signed with this switch's key",
         controller);
  return false;
}

// The signature is checked first: a peer without the key gets the same refusal whatever it sends.
// Then the sequence number, so that a replayed request is not carried out. The controller gets only
// requests that have passed all checks.
void Connection::on_request(Controller& controller) {
  const control::Header header = reader_.header();
  if (!is_authentic(controller)) return;
  signs_ = true;
  if (header.sequence != sequence_ + 1 || header.sequence == 0) {
    return reject(Refusal::kSequence,
                  "request number " + std::to_string(header.sequence) + " came where number " +
                      std::to_string(sequence_ + 1) + " was due: replayed, or lost on the way",
                  controller);
  }
  const auto message = control::decode_payload(header.type, reader_.payload());
  if (!message || !control::is_request(header.type)) {
    return reject(
        Refusal::kMalformed,
        message ? std::string("this is no request: ") + name_of(header.type) : message.error().what,
        controller);
  }
  sequence_ = header.sequence;
  if (!proven_) {
    if (const auto full = places_.make_place(caller_)) {
      return reject(Refusal::kFull, *full, controller);
    }
  }
  phase_ = Phase::kServing;
  proven_ = true;
  answer(controller.handle(*message, caller_), sequence_);
  deadline_ns_ = controller.now_ns() + options_.request_ns;
}

// Only a peer that has proven the key gets signed answers. Otherwise a stranger could collect
// frames with valid signatures.
void Connection::answer(const control::Message& message, uint32_t sequence) {
  output_ = control::encode(message, sequence);
  sent_ = 0;
  if (!signs_) return;
  // A failure leaves zeros, which a client with a key will not take.
  if (auto done = signer_.sign(control::Direction::kAnswer, output_); !done) {
    SLIME_WARN("%s", done.error().what.c_str());
  }
}

// Ends the connection: counts and logs the reason, and sends it to the peer.
void Connection::reject(Refusal why, const std::string& text, Controller& controller) {
  ControlCounters& counters = controller.counters();
  Counter& counter = why == Refusal::kUnauthorized ? counters.unauthorized
                     : why == Refusal::kSequence   ? counters.replayed
                     : why == Refusal::kMalformed  ? counters.malformed
                                                   : counters.connections_refused;
  counter.add();
  if (const auto end = strangers_.turned_away(controller.now_ns())) {
    SLIME_WARN("control connection from %s: %s%s", peer_.to_string().c_str(), text.c_str(),
               end->c_str());
  }
  closing_ = true;
  answer(Refused{why, text}, sequence_);
  deadline_ns_ = std::min(deadline_ns_, controller.now_ns() + options_.request_ns);
}

}  // namespace slime::net
