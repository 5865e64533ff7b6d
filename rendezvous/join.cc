// A rank's end of a rendezvous.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rendezvous/messages.h"

#include "base/net/dialer.h"
#include "base/text.h"
#include "settings/times.h"

namespace slime::rendezvous {
namespace {

constexpr uint64_t kRetryNs = 50'000'000;

// States: dialing -> greeted -> hello sent -> answered. A connection that breaks, that the host
// resets for lack of room, or over which no greeting comes, leads back to dialing until the
// deadline. A host that has taken the hello of a connection that breaks later does not take a
// second one: to it this rank is gone. Threads: one, in run().
class Joiner {
 public:
  Joiner(const Terms& terms, const std::string& blob, const HostPort& host)
      : terms_(terms),
        blob_(blob),
        deadline_(terms.clock, terms.limit_ns),
        answer_deadline_(terms.clock, terms.limit_ns + terms.grace_ns),
        dialer_([host] { return resolve(host, "rank 0's host"); },
                {.retry = Dialer::Retry::kAll, .pause_ns = kRetryNs}) {}
  Result<Gathered> run();

 private:
  Result<void> dial();
  Result<void> hear_greeting();
  Result<void> say_hello();
  Result<Gathered> hear_answer();
  Result<void> receive(std::span<std::byte> message, const Deadline& deadline,
                       const char* late_text);
  Result<void> receive_answer(std::span<std::byte> message);
  Result<void> check_head(const Answer& answer) const;
  Error reason_of(const Answer& answer, std::span<const std::byte> content) const;
  Error late(const char* what) const {
    return make_error(Status::kTimeout, 0, "rendezvous: %s %s", host().c_str(), what);
  }
  std::string host() const { return "rank 0 at " + terms_.where; }

  const Terms& terms_;
  const std::string& blob_;
  const Deadline deadline_;
  uint64_t greeting_ns_ = times::kGreetingTry;  // the limit of the next wait for it
  Deadline answer_deadline_;  // restarted when the greeting has come; the host's ends earlier
  Dialer dialer_;
  Greeting greeting_;
  Hello hello_;
};

Result<Gathered> Joiner::run() {
  for (;;) {
    const Deadline::Look look(deadline_);
    if (auto dialed = dial(); !dialed) return fail(std::move(dialed.error()));
    auto done = hear_greeting();
    if (done) done = say_hello();
    auto gathered = done ? hear_answer() : Result<Gathered>(fail(std::move(done.error())));
    if (gathered || !Dialer::may_pass(gathered.error()) || look.expired()) return gathered;
    (void)dialer_.again(terms_.clock.now_ns(), &gathered.error());  // always kAgain here
  }
}

Result<void> Joiner::dial() {
  Error error;
  const Status status = repeat_until(deadline_, dialer_.fd(), POLLOUT, [&] {
    return dialer_.progress(terms_.clock.now_ns(), &error);
  });
  if (status == Status::kOk) return {};
  if (status != Status::kAgain) {
    return fail(make_error(error.status, error.code, "rendezvous: %s is gone: %s", host().c_str(),
                           error.what.c_str()));
  }
  const std::string& why = dialer_.last_failure();
  return fail(Status::kTimeout, "rank %u cannot reach %s: %s", terms_.rank, host().c_str(),
              why.empty() ? "no answer" : why.c_str());
}

Result<void> Joiner::hear_greeting() {
  const uint64_t now_ns = terms_.clock.now_ns(), end_ns = deadline_.end_ns();
  const Deadline limit(terms_.clock, std::min(greeting_ns_, end_ns > now_ns ? end_ns - now_ns : 0));
  greeting_ns_ *= 2;  // for a host that is only slow
  auto heard = receive(bytes_of(greeting_), limit,
                       "did not greet us in time; does another program listen there?");
  if (!heard) {
    if (heard.error().status == Status::kTimeout) heard.error().code = ETIMEDOUT;
    // The host may still close the socket of a rendezvous before this one.
    if (heard.error().status == Status::kRemote) {
      heard.error() = make_error(Status::kRemote, ECONNRESET,
                                 "rendezvous: %s closed the connection before it greeted us: %s",
                                 host().c_str(), std::string(heard.error().what).c_str());
    }
    return heard;
  }
  const auto prefix = bytes_of(std::as_const(greeting_.prefix));
  if (const char* fault = fault_of(prefix, MessageType::kGreeting)) {
    return fail(Status::kRemote,
                "rendezvous: what listens at %s is no rank 0 of this library and version: %s",
                terms_.where.c_str(), fault);
  }
  dialer_.stay();
  return {};
}

Result<void> Joiner::say_hello() {
  answer_deadline_.restart(terms_.limit_ns + terms_.grace_ns);
  if ((greeting_.key_wanted != 0) != !terms_.key.empty()) {
    return fail(Status::kConfig,
                "rendezvous: %s has %s key, and rank %u has %s; give all ranks the same "
                "NCCL_SLIME_SWITCH_KEY_FILE",
                host().c_str(), greeting_.key_wanted ? "a" : "no", terms_.rank,
                greeting_.key_wanted ? "none" : "one");
  }
  if (blob_.size() > kMaxBlobBytes) {
    return fail(Status::kConfig,
                "rendezvous: rank %u has %zu bytes to say of itself, and %zu are the most",
                terms_.rank, blob_.size(), kMaxBlobBytes);
  }
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  hello_.nonce = *nonce;
  hello_.rank = terms_.rank;
  hello_.ranks = terms_.ranks;
  hello_.blob_bytes = static_cast<uint32_t>(blob_.size());
  std::ranges::copy(bytes_of(blob_), hello_.blob.begin());
  auto mac = Signer{terms_.key, greeting_.nonce, hello_.nonce}.sign(MessageType::kHello,
                                                                    signed_part(hello_));
  if (!mac) return fail(std::move(mac.error()));
  hello_.mac = *mac;
  size_t done = 0;
  Error error;
  const Status status = repeat_until(deadline_, dialer_.fd(), POLLOUT, [&] {
    return send_message(dialer_.fd(), bytes_of(std::as_const(hello_)), &done, &error);
  });
  if (status == Status::kOk) return {};
  return fail(status == Status::kAgain ? late("took nothing in time") : std::move(error));
}

Result<void> Joiner::receive(std::span<std::byte> message, const Deadline& deadline,
                             const char* late_text) {
  size_t done = 0;
  Error error;
  const Status status = repeat_until(deadline, dialer_.fd(), POLLIN, [&] {
    return receive_message(dialer_.fd(), message, &done, &error);
  });
  if (status == Status::kOk) return {};
  return fail(status == Status::kAgain ? late(late_text) : std::move(error));
}

Result<void> Joiner::receive_answer(std::span<std::byte> message) {
  auto received =
      receive(message, answer_deadline_, "did not say who the others are in time; look at its log");
  if (received || received.error().status == Status::kTimeout) return received;
  return fail(make_error(Status::kRemote, received.error().code,
                         "rendezvous: %s gave up before all ranks had come (its log says why): %s",
                         host().c_str(), received.error().what.c_str()));
}

Result<Gathered> Joiner::hear_answer() {
  Answer answer;
  auto done = receive_answer(bytes_of(answer));
  if (done) done = check_head(answer);
  if (!done) return fail(std::move(done.error()));
  std::vector<std::byte> message(sizeof answer + answer.bytes);
  std::memcpy(message.data(), &answer, sizeof answer);
  const auto content = std::span(message).subspan(sizeof answer);
  Mac mac{};
  done = receive_answer(content);
  if (done) done = receive_answer(mac);
  if (done) {
    done = Signer{terms_.key, greeting_.nonce, hello_.nonce}.check(MessageType::kAnswer, message,
                                                                   mac, "rendezvous: " + host());
  }
  if (!done) return fail(std::move(done.error()));
  if (answer.outcome != Outcome::kGathered) return fail(reason_of(answer, content));
  auto blobs = unpack_blobs(content, terms_.ranks);
  if (!blobs) {
    return fail(Status::kRemote, "rendezvous: %s sent a malformed answer", host().c_str());
  }
  Gathered gathered{std::move(*blobs), {}};
  gathered.connections.push_back(std::move(dialer_.fd()));
  return gathered;
}

// Before memory is allotted for the rest.
Result<void> Joiner::check_head(const Answer& answer) const {
  const uint64_t most = answer.outcome == Outcome::kGathered
                            ? uint64_t{terms_.ranks} * (sizeof(uint32_t) + kMaxBlobBytes)
                            : kMaxBlobBytes;
  if (!fault_of(bytes_of(answer.prefix), MessageType::kAnswer) && answer.bytes <= most) return {};
  return fail(Status::kRemote, "rendezvous: %s sent no answer that can be (%u bytes for %u ranks)",
              host().c_str(), answer.bytes, terms_.ranks);
}

Error Joiner::reason_of(const Answer& answer, std::span<const std::byte> content) const {
  const std::string reason =
      printable({reinterpret_cast<const char*>(content.data()), content.size()});
  const auto status = static_cast<Status>(answer.status);
  const bool known = answer.status <= static_cast<uint16_t>(Status::kInternal) &&
                     status != Status::kOk && status != Status::kAgain;
  const bool refused = answer.outcome == Outcome::kRefused;
  return make_error(known ? status : Status::kRemote, 0, "rendezvous: %s %s: %s", host().c_str(),
                    refused ? "turned us away" : "gave up", reason.c_str());
}

}  // namespace

Result<Gathered> join_group(const Terms& terms, const std::string& blob, const HostPort& host) {
  return Joiner(terms, blob, host).run();
}

}  // namespace slime::rendezvous
