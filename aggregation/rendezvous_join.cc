// The end of a rendezvous at all ranks but 0.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "aggregation/rendezvous.h"
#include "rendezvous/connect.h"

namespace slime::aggregation {
namespace {

constexpr int kRetryMs = 50;
// Rank 0 has the same deadline, and its answer then names the missing ranks.
constexpr uint64_t kGraceNs = 1'000'000'000;

// States: connecting, until a Greeting has come -> joining -> done. A connection that rank 0
// resets, for lack of room, leads back to connecting until the deadline. Thread rules: one thread,
// in run().
class Joiner {
 public:
  Joiner(const MeetingPoint& point, const Introduction& own) : point_(point), own_(own) {}
  Result<std::vector<Introduction>> run();

 private:
  template <typename Step>
  Status keep_trying(short events, uint64_t deadline_ns, Step step);
  // False: no rank 0 listens there yet.
  Result<bool> greet();
  Result<bool> connect();
  Result<std::vector<Introduction>> join();
  Result<void> say_who();
  Result<std::vector<Introduction>> take_verdict();
  Result<void> receive(std::span<std::byte> message);
  Result<void> check(const Verdict& verdict, std::span<const std::byte> introductions,
                     const Mac& mac);
  Error late(const char* what) const;
  std::string host() const { return "rank 0 at " + point_.address.to_string(); }

  const MeetingPoint& point_;
  const Introduction& own_;
  Fd fd_;
  Greeting greeting_;
  Joining joining_;
  std::string last_attempt_;  // why it failed
  bool aborted_ = false;      // rank 0 had no room for this connection then
};

template <typename Step>
Status Joiner::keep_trying(short events, uint64_t deadline_ns, Step step) {
  return rendezvous::try_until(point_.clock, deadline_ns, fd_, events, step);
}

Error Joiner::late(const char* what) const {
  return make_error(Status::kTimeout, 0, "rendezvous with %s: %s in time%s%s", host().c_str(), what,
                    last_attempt_.empty() ? "; look at its log" : ": ", last_attempt_.c_str());
}

Result<std::vector<Introduction>> Joiner::run() {
  for (;;) {
    const bool last = point_.clock.now_ns() >= point_.deadline_ns;
    auto greeted = greet();
    if (greeted && *greeted) {
      aborted_ = false;
      auto introductions = join();
      if (introductions || !aborted_ || last) return introductions;
      last_attempt_ = introductions.error().what;
      greeted = false;
    }
    const bool was_there = !greeted && greeted.error().status != Status::kTimeout;
    if (last && !was_there) return fail(late("it was not there"));
    if (!greeted) return fail(std::move(greeted.error()));
    (void)::poll(nullptr, 0, kRetryMs);
  }
}

Result<bool> Joiner::connect() {
  auto fd = start_connect(point_.address);
  if (!fd) {
    last_attempt_ = fd.error().what;
    if (fd.error().status == Status::kRemote) return false;
    return fail(std::move(fd.error()));
  }
  fd_ = std::move(*fd);
  Error error;
  const Status status =
      rendezvous::connect_until(point_.clock, point_.deadline_ns, fd_, point_.address, &error);
  if (status == Status::kOk) return true;
  if (status == Status::kAgain) return fail(late("no connection stood"));
  last_attempt_ = error.what;
  return false;
}

// Rank 0 may not listen yet, or still close the socket of a rendezvous before this one.
Result<bool> Joiner::greet() {
  auto connected = connect();
  if (!connected || !*connected) return connected;
  size_t done = 0;
  Error error;
  const Status status = keep_trying(POLLIN, point_.deadline_ns, [&] {
    return receive_message(fd_, bytes_of(greeting_), &done, &error);
  });
  if (status == Status::kAgain) {
    return fail(late("no greeting came; does another program listen there?"));
  }
  if (status != Status::kOk && done == 0) {
    last_attempt_ = error.what;
    return false;
  }
  if (status == Status::kOk && valid(greeting_.prefix, MessageType::kGreeting)) return true;
  return fail(make_error(Status::kRemote, 0,
                         "rendezvous: what listens at %s is no rank 0 of this library and version",
                         point_.address.to_string().c_str()));
}

Result<std::vector<Introduction>> Joiner::join() {
  auto said = say_who();
  if (!said) return fail(std::move(said.error()));
  return take_verdict();
}

Result<void> Joiner::say_who() {
  if ((greeting_.key_wanted != 0) != !point_.key.empty()) {
    return fail(make_error(Status::kConfig, 0,
                           "rendezvous: %s has %s key, and rank %u has %s; give all ranks the same "
                           "NCCL_SLIME_SWITCH_KEY_FILE",
                           host().c_str(), greeting_.key_wanted ? "a" : "no", own_.rank,
                           greeting_.key_wanted ? "none" : "one"));
  }
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  joining_.nonce = *nonce;
  joining_.introduction = own_;
  const auto text = bytes_of(std::as_const(joining_)).first(sizeof joining_ - sizeof(Mac));
  auto mac = sign({point_.key, greeting_.nonce, joining_.nonce}, MessageType::kJoining, text);
  if (!mac) return fail(std::move(mac.error()));
  joining_.mac = *mac;
  size_t done = 0;
  Error error;
  const Status status = keep_trying(POLLOUT, point_.deadline_ns, [&] {
    return send_message(fd_, bytes_of(joining_), &done, &error);
  });
  if (status == Status::kAgain) return fail(late("it took nothing"));
  aborted_ = status != Status::kOk && is_abort(error);
  if (status != Status::kOk) return fail(std::move(error));
  return {};
}

Result<void> Joiner::receive(std::span<std::byte> message) {
  size_t done = 0;
  Error error;
  const Status status = keep_trying(POLLIN, point_.deadline_ns + kGraceNs,
                                    [&] { return receive_message(fd_, message, &done, &error); });
  if (status == Status::kOk) return {};
  if (status == Status::kAgain) return fail(late("it did not say who the others are"));
  aborted_ = is_abort(error);
  return fail(make_error(Status::kRemote, error.code,
                         "rendezvous: %s gave up before all ranks had come (its log says why): %s",
                         host().c_str(), error.what.c_str()));
}

Result<std::vector<Introduction>> Joiner::take_verdict() {
  Verdict verdict;
  auto received = receive(bytes_of(verdict));
  if (!received) return fail(std::move(received.error()));
  const bool fits = verdict.introductions == 0 || verdict.introductions == own_.ranks;
  if (!valid(verdict.prefix, MessageType::kVerdict) || !fits) {
    return fail(make_error(Status::kRemote, 0,
                           "rendezvous: %s sent no verdict that can be (%u "
                           "cards, %u ranks)",
                           host().c_str(), verdict.introductions, own_.ranks));
  }
  std::vector<Introduction> introductions(verdict.introductions);
  Mac mac{};
  received = receive(std::as_writable_bytes(std::span(introductions)));
  if (received) received = receive(mac);
  if (received) received = check(verdict, std::as_bytes(std::span(introductions)), mac);
  if (!received) return fail(std::move(received.error()));
  return introductions;
}

Result<void> Joiner::check(const Verdict& verdict, std::span<const std::byte> introductions,
                           const Mac& mac) {
  std::vector<std::byte> text(sizeof verdict + introductions.size());
  std::memcpy(text.data(), &verdict, sizeof verdict);
  std::copy(introductions.begin(), introductions.end(), text.begin() + sizeof verdict);
  auto proven =
      proves({point_.key, greeting_.nonce, joining_.nonce}, MessageType::kVerdict, text, mac);
  if (!proven) return fail(std::move(proven.error()));
  if (!*proven) {
    return fail(make_error(Status::kRemote, 0,
                           "rendezvous: %s does not have our key: give all ranks the same "
                           "NCCL_SLIME_SWITCH_KEY_FILE",
                           host().c_str()));
  }
  if (verdict.introductions != 0) return {};
  std::string reason(verdict.reason.data(), strnlen(verdict.reason.data(), verdict.reason.size()));
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  const bool known = verdict.status > static_cast<uint32_t>(Status::kAgain) &&
                     verdict.status <= static_cast<uint32_t>(Status::kInternal);
  const auto status = known ? static_cast<Status>(verdict.status) : Status::kRemote;
  return fail(make_error(status, 0, "rendezvous: %s turned rank %u away: %s", host().c_str(),
                         own_.rank, reason.c_str()));
}

}  // namespace

Result<std::vector<Introduction>> join_rank_0(const MeetingPoint& point, const Introduction& own) {
  return Joiner(point, own).run();
}

Result<Mac> sign(const MacContext& context, MessageType type, std::span<const std::byte> message) {
  if (context.key.empty()) return Mac{};
  std::vector<std::byte> text{static_cast<std::byte>(type)};
  text.insert(text.end(), context.rank_0.begin(), context.rank_0.end());
  text.insert(text.end(), context.joiner.begin(), context.joiner.end());
  text.insert(text.end(), message.begin(), message.end());
  return hmac_sha256(context.key, text);
}

Result<bool> proves(const MacContext& context, MessageType type, std::span<const std::byte> message,
                    const Mac& mac) {
  if (context.key.empty()) return true;
  auto wanted = sign(context, type, message);
  if (!wanted) return fail(std::move(wanted.error()));
  return same_mac(*wanted, mac);
}

}  // namespace slime::aggregation
