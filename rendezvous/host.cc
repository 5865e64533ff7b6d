// The host's end of a rendezvous.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/net/hello_port.h"
#include "rendezvous/messages.h"

namespace slime::rendezvous {
namespace {

Result<std::vector<std::byte>> signed_answer(const Signer& signer, Outcome outcome, Status status,
                                             std::span<const std::byte> content) {
  Answer answer;
  answer.outcome = outcome;
  answer.status = static_cast<uint16_t>(status);
  answer.bytes = static_cast<uint32_t>(content.size());
  const auto head = bytes_of(std::as_const(answer));
  std::vector<std::byte> message(head.begin(), head.end());
  message.insert(message.end(), content.begin(), content.end());
  auto mac = signer.sign(MessageType::kAnswer, message);
  if (!mac) return fail(std::move(mac.error()));
  message.insert(message.end(), mac->begin(), mac->end());
  return message;
}

// Sends what the socket takes at once, and does not wait.
void tell(const Fd& fd, const Signer& signer, Outcome outcome, const Error& why) {
  const auto text = bytes_of(why.what);
  const auto answer =
      signed_answer(signer, outcome, why.status, text.first(std::min(text.size(), kMaxBlobBytes)));
  size_t told = 0;
  Error error;
  if (answer) (void)send_message(fd, *answer, &told, &error);
}

// States of a connection: a caller of HelloPort until its hello is whole and that of a rank, then a
// member until the answer. Invariants: a rank with a member has come, and so has this
// process where it is a rank. Threads: one, in run().
class Host final : private HelloPort {
 public:
  Host(const Terms& terms, Fd listener, const HostOptions& options);
  Result<Gathered> run();

 private:
  struct Member {
    Fd fd;
    SocketAddress from;
    Signer signer;
  };

  Result<std::vector<std::byte>> open() override;
  const char* refuse_begun(std::span<const std::byte> said) const override {
    const char* const fault = fault_of(said, MessageType::kHello);
    if (fault == kOtherVersion) ++other_versions_;
    return fault;
  }
  std::optional<std::string> accept(HelloPort::Caller& caller) override;
  void log_stranger(const HelloPort::Caller& caller, const std::string& why,
                    const std::string& more) const override {
    warn(caller.from, why, more);
  }

  bool each_comes_once() const { return options_.is_rank != nullptr; }
  void take(uint32_t rank, std::string blob) {
    blobs_[rank] = std::move(blob);
    has_come_[rank] = true;
  }
  Result<void> gather();
  void drop_gone();
  bool is_gone(const Member& member) const;
  Result<std::string> judge(const Hello& hello, const Signer& signer, const Claim& claim) const;
  Result<void> tell_all(const std::vector<std::byte>& content);
  Result<void> tell_blobs(uint32_t rank, const Member& member,
                          const std::vector<std::byte>& content) const;
  void tell_late_ranks();
  void excuse_pause();
  void wait(Status read) const;
  void fail_run(Error why) {  // the first failure counts
    if (!failure_) failure_ = std::move(why);
  }
  void warn(const SocketAddress& from, const std::string& why, const std::string& more) const;
  std::string missing() const;
  Error timed_out() const;

  const Terms& terms_;
  const HostOptions& options_;
  const Fd listener_;
  Deadline deadline_;
  uint64_t looked_ns_ = 0;                      // when the sockets were last read
  std::vector<std::optional<Member>> members_;  // by rank
  std::vector<std::string> blobs_;              // by rank
  std::vector<bool> has_come_;                  // by rank; the others are waited for
  std::string last_refusal_;
  std::optional<Error> failure_;
  StrangerLog gone_;                     // members that went away
  mutable uint32_t other_versions_ = 0;  // callers of another version that were turned away
};

Host::Host(const Terms& terms, Fd listener, const HostOptions& options)
    : HelloPort(sizeof(Hello), terms.hello_limit_ns),
      terms_(terms),
      options_(options),
      listener_(std::move(listener)),
      deadline_(terms.clock, terms.limit_ns),
      members_(terms.ranks),
      blobs_(terms.ranks),
      has_come_(terms.ranks) {
  if (options.own) take(terms.rank, *options.own);
}

Result<Gathered> Host::run() {
  auto done = gather();
  // Members get the reason. Ranks that come later would find the port closed, so where each comes
  // once, they are waited for; after a time-out none is expected any more.
  for (auto& member : members_) {
    if (!done && member) tell(member->fd, member->signer, Outcome::kFailed, done.error());
  }
  if (!done && each_comes_once() && done.error().status != Status::kTimeout) {
    if (!failure_) failure_ = done.error();
    tell_late_ranks();
  }
  Gathered gathered;
  if (done) {
    gathered.blobs = std::move(blobs_);
    done = tell_all(pack_blobs(gathered.blobs));
  }
  if (!done) {
    done.error().what = "rendezvous at " + terms_.where + ": " + done.error().what;
    return fail(std::move(done.error()));
  }
  for (auto& member : members_) {
    gathered.connections.push_back(member ? std::move(member->fd) : Fd());
  }
  return gathered;
}

Result<void> Host::gather() {
  looked_ns_ = steady_now_ns();
  for (;;) {
    if (each_comes_once()) excuse_pause();
    const Deadline::Look attempt(deadline_);
    drop_gone();
    Error error;
    const Status status = read_callers(listener_, terms_.clock, &error);
    if (status != Status::kOk && status != Status::kAgain) return fail(std::move(error));
    if (failure_) return fail(*failure_);
    if (missing().empty()) return {};
    if (attempt.expired()) return fail(timed_out());
    wait(status);
  }
}

// A pause of this thread, in which no socket was read, does not count against the ranks of a run.
void Host::excuse_pause() {
  const uint64_t now_ns = steady_now_ns(), away_ns = now_ns - std::exchange(looked_ns_, now_ns);
  if (away_ns < times::kSecond / 2) return;
  const uint64_t clock_ns = terms_.clock.now_ns(), end_ns = deadline_.end_ns();
  const uint64_t left_ns = end_ns > clock_ns ? end_ns - clock_ns : 0;
  deadline_.restart(left_ns + std::min(away_ns, terms_.hello_limit_ns));
}

// After a failure: a rank that has not come yet would find the port closed, and would dial it until
// its own deadline, without the reason.
void Host::tell_late_ranks() {
  for (auto& member : members_) member.reset();
  const Deadline end(terms_.clock, times::kRunLinger);
  for (;;) {
    const Deadline::Look attempt(end);
    Error error;
    const Status status = read_callers(listener_, terms_.clock, &error);
    if (missing().empty() || attempt.expired()) return;
    wait(status);
  }
}

Error Host::timed_out() const {
  std::string versions;
  if (other_versions_ > 0) {
    versions = "; of " + std::to_string(other_versions_) +
               (other_versions_ == 1 ? " caller: " : " callers: ") + kOtherVersion;
  }
  return make_error(Status::kTimeout, 0, "rank %s of %u did not come in time%s%s%s%s",
                    missing().c_str(), terms_.ranks,
                    last_refusal_.empty() ? "; look at their logs" : "; last turned away: ",
                    last_refusal_.c_str(), versions.c_str(), summary().c_str());
}

std::string Host::missing() const {
  std::string who;
  for (uint32_t rank = 0; rank < terms_.ranks; ++rank) {
    if (!has_come_[rank]) who += (who.empty() ? "" : ", ") + std::to_string(rank);
  }
  return who;
}

// `read` is what read_callers() returned: poll() would report at once a listener whose connections
// cannot be accepted now.
void Host::wait(Status read) const {
  std::vector<pollfd> waited;
  if (read == Status::kOk) waited.push_back({listener_.get(), POLLIN, 0});
  add_to(&waited);
  for (const auto& member : members_) {
    if (member) waited.push_back({member->fd.get(), POLLIN, 0});
  }
  (void)::poll(waited.data(), waited.size(), kPollMs);
}

void Host::drop_gone() {
  for (uint32_t rank = 0; rank < terms_.ranks; ++rank) {
    if (!members_[rank] || !is_gone(*members_[rank])) continue;
    const SocketAddress from = members_[rank]->from;
    members_[rank].reset();
    if (each_comes_once()) {  // its place stays taken
      fail_run(make_error(Status::kRemote, 0, "rank %u on %s is gone (killed, or crashed)", rank,
                          from.host().c_str()));
      continue;
    }
    has_come_[rank] = false;
    if (const auto more = gone_.turned_away(terms_.clock.now_ns())) {
      warn(from, "it went away again", *more);
    }
  }
}

// A member sends nothing more: all that can be read is that it has closed the connection.
bool Host::is_gone(const Member& member) const {
  std::byte more;
  const ssize_t count = ::recv(member.fd.get(), &more, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

Result<std::vector<std::byte>> Host::open() {
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  Greeting greeting;
  greeting.nonce = *nonce;
  greeting.key_wanted = terms_.key.empty() ? 0 : 1;
  const auto bytes = bytes_of(std::as_const(greeting));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

std::optional<std::string> Host::accept(HelloPort::Caller& caller) {
  Greeting greeting;
  Hello hello;
  std::memcpy(&greeting, caller.opening.data(), sizeof greeting);
  std::memcpy(&hello, caller.hello.data(), sizeof hello);
  const Signer signer{terms_.key, greeting.nonce, hello.nonce};
  const Claim said{hello.rank, hello.ranks,
                   std::string(reinterpret_cast<const char*>(hello.blob.data()),
                               std::min<size_t>(hello.blob_bytes, kMaxBlobBytes))};
  auto blob = judge(hello, signer, said);
  if (blob && failure_) {
    tell(caller.fd, signer, Outcome::kFailed, *failure_);
    has_come_[said.rank] = true;  // it has the reason, so tell_late_ranks() need not wait for it
    return "it came after the rendezvous had failed";
  }
  if (blob) {
    take(said.rank, std::move(*blob));
    members_[said.rank].emplace(Member{std::move(caller.fd), caller.from, signer});
    return std::nullopt;
  }
  std::string why = blob.error().what;
  tell(caller.fd, signer, Outcome::kRefused, blob.error());
  last_refusal_ = caller.from.to_string() + ": " + why;
  if (options_.is_rank && options_.is_rank(said)) {
    fail_run(make_error(blob.error().status, 0, "rank %u on %s was refused: %s", said.rank,
                        caller.from.host().c_str(), why.c_str()));
    if (said.rank < terms_.ranks) has_come_[said.rank] = true;
  }
  return why;
}

Result<std::string> Host::judge(const Hello& hello, const Signer& signer,
                                const Claim& claim) const {
  auto proven = signer.check(MessageType::kHello, signed_part(hello), hello.mac, "it");
  if (!proven) return fail(std::move(proven.error()));
  if (hello.blob_bytes > kMaxBlobBytes) {
    return fail(Status::kRemote, "its hello is malformed");
  }
  auto blob = options_.judge(claim);
  if (!blob) return blob;
  if (claim.ranks != terms_.ranks || claim.rank >= terms_.ranks) {
    return fail(Status::kInvalid,
                "it says that it is rank %u of %u, and there are %u; give all ranks the same "
                "number of ranks",
                claim.rank, claim.ranks, terms_.ranks);
  }
  if (!has_come_[claim.rank]) return blob;
  const auto& first = members_[claim.rank];
  return fail(Status::kInvalid,
              "it says that it is rank %u, which has come already (%s); give every rank a number "
              "of its own",
              claim.rank, first ? first->from.to_string().c_str() : "this is it");
}

void Host::warn(const SocketAddress& from, const std::string& why, const std::string& more) const {
  SLIME_WARN("rendezvous at %s: turned away %s: %s%s", terms_.where.c_str(),
             from.to_string().c_str(), why.c_str(), more.c_str());
}

// After one member cannot be told, those that have no answer yet get the reason: otherwise they
// would see only that this process closes the connection.
Result<void> Host::tell_all(const std::vector<std::byte>& content) {
  Result<void> told;
  for (uint32_t rank = 0; rank < terms_.ranks; ++rank) {
    const auto& member = members_[rank];
    if (!member) continue;
    if (told)
      told = tell_blobs(rank, *member, content);
    else
      tell(member->fd, member->signer, Outcome::kFailed, told.error());
  }
  return told;
}

// Where each rank comes once, a failure here is the owner's to find: the connection is broken.
Result<void> Host::tell_blobs(uint32_t rank, const Member& member,
                              const std::vector<std::byte>& content) const {
  auto answer = signed_answer(member.signer, Outcome::kGathered, Status::kOk, content);
  if (!answer) return fail(std::move(answer.error()));
  size_t told = 0;
  Error error;
  const Status status = repeat_until(deadline_, member.fd, POLLOUT, [&] {
    return send_message(member.fd, *answer, &told, &error);
  });
  if (status == Status::kOk || each_comes_once()) return {};
  return fail(Status::kRemote, "rank %u at %s cannot be told who the others are: %s", rank,
              member.from.to_string().c_str(),
              status == Status::kAgain ? "it reads nothing" : error.what.c_str());
}

}  // namespace

Result<Gathered> host_group(const Terms& terms, Fd listener, const HostOptions& options) {
  return Host(terms, std::move(listener), options).run();
}

}  // namespace slime::rendezvous
