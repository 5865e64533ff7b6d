// The end of a rendezvous at all ranks but 0.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "aggregation/rendezvous.h"
#include "aggregation/rendezvous_wire.h"

namespace slime::aggregation {
namespace {

constexpr int kPollMs = 20;
constexpr int kRetryMs = 50;
// Rank 0 has the same deadline, and says at it who is missing.
constexpr uint64_t kGraceNs = 1'000'000'000;

class Guest {
 public:
  Guest(const Meeting& meeting, const Card& own) : meeting_(meeting), own_(own) {}
  Result<std::vector<Card>> run();

 private:
  // Tries until it is done; kAgain: the time is over. Who was held up looks once more.
  template <typename Step>
  Status keep_trying(short events, uint64_t deadline_ns, Step step);
  // False: nobody is there yet.
  Result<bool> greet();
  Result<bool> connect();
  Result<std::vector<Card>> join();
  Result<void> say_who();
  Result<std::vector<Card>> take_verdict();
  Result<void> receive(std::span<std::byte> message);
  Result<void> check(const Verdict& verdict, std::span<const std::byte> cards, const Mac& mac);
  Error late(const char* what) const;
  std::string host() const { return "rank 0 at " + meeting_.address.to_string(); }

  const Meeting& meeting_;
  const Card& own_;
  Fd fd_;
  Greeting greeting_;
  Joining joining_;
  std::string nobody_;    // why not, when last tried
  bool aborted_ = false;  // rank 0 had no place for us just then
};

template <typename Step>
Status Guest::keep_trying(short events, uint64_t deadline_ns, Step step) {
  for (;;) {
    const bool late = meeting_.clock.now_ns() >= deadline_ns;
    const Status status = step();
    if (status != Status::kAgain || late) return status;
    pollfd waited{fd_.get(), events, 0};
    (void)::poll(&waited, 1, kPollMs);
  }
}

Error Guest::late(const char* what) const {
  return make_error(Status::kTimeout, 0, "rendezvous with %s: %s in time%s%s", host().c_str(), what,
                    nobody_.empty() ? "; look at its log" : ": ", nobody_.c_str());
}

Result<std::vector<Card>> Guest::run() {
  for (;;) {
    const bool last = meeting_.clock.now_ns() >= meeting_.deadline_ns;
    auto greeted = greet();
    if (greeted && *greeted) {
      aborted_ = false;
      auto cards = join();
      if (cards || !aborted_ || last) return cards;
      nobody_ = cards.error().what;
      greeted = false;
    }
    const bool was_there = !greeted && greeted.error().status != Status::kTimeout;
    if (last && !was_there) return fail(late("it was not there"));
    if (!greeted) return fail(std::move(greeted.error()));
    (void)::poll(nullptr, 0, kRetryMs);
  }
}

Result<bool> Guest::connect() {
  auto fd = start_connect(meeting_.address);
  if (!fd) {
    nobody_ = fd.error().what;
    if (fd.error().status == Status::kRemote) return false;
    return fail(std::move(fd.error()));
  }
  fd_ = std::move(*fd);
  Error error;
  const Status status = keep_trying(POLLOUT, meeting_.deadline_ns,
                                    [&] { return finish_connect(fd_, meeting_.address, &error); });
  if (status == Status::kOk) return true;
  if (status == Status::kAgain) return fail(late("no connection stood"));
  nobody_ = error.what;
  return false;
}

// Rank 0 may not listen yet, or still close the socket of a rendezvous before this one.
Result<bool> Guest::greet() {
  auto connected = connect();
  if (!connected || !*connected) return connected;
  size_t done = 0;
  Error error;
  const Status status = keep_trying(POLLIN, meeting_.deadline_ns, [&] {
    return receive_message(fd_, bytes_of(greeting_), &done, &error);
  });
  if (status == Status::kAgain) {
    return fail(late("no greeting came; does another program listen there?"));
  }
  if (status != Status::kOk && done == 0) {
    nobody_ = error.what;
    return false;
  }
  if (status == Status::kOk && valid(greeting_.prefix, MessageType::kGreeting)) return true;
  return fail(make_error(Status::kRemote, 0,
                         "rendezvous: what listens at %s is no rank 0 of this library and version",
                         meeting_.address.to_string().c_str()));
}

Result<std::vector<Card>> Guest::join() {
  auto said = say_who();
  if (!said) return fail(std::move(said.error()));
  return take_verdict();
}

Result<void> Guest::say_who() {
  if ((greeting_.key_wanted != 0) != !meeting_.key.empty()) {
    return fail(make_error(Status::kConfig, 0,
                           "rendezvous: %s has %s key, and rank %u has %s; give all ranks the same "
                           "NCCL_SLIME_SWITCH_KEY_FILE",
                           host().c_str(), greeting_.key_wanted ? "a" : "no", own_.rank,
                           greeting_.key_wanted ? "none" : "one"));
  }
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  joining_.nonce = *nonce;
  joining_.card = own_;
  const auto text = bytes_of(std::as_const(joining_)).first(sizeof joining_ - sizeof(Mac));
  auto mac = sign({meeting_.key, greeting_.nonce, joining_.nonce}, MessageType::kJoining, text);
  if (!mac) return fail(std::move(mac.error()));
  joining_.mac = *mac;
  size_t done = 0;
  Error error;
  const Status status = keep_trying(POLLOUT, meeting_.deadline_ns, [&] {
    return send_message(fd_, bytes_of(joining_), &done, &error);
  });
  if (status == Status::kAgain) return fail(late("it took nothing"));
  aborted_ = status != Status::kOk && is_abort(error);
  if (status != Status::kOk) return fail(std::move(error));
  return {};
}

Result<void> Guest::receive(std::span<std::byte> message) {
  size_t done = 0;
  Error error;
  const Status status = keep_trying(POLLIN, meeting_.deadline_ns + kGraceNs,
                                    [&] { return receive_message(fd_, message, &done, &error); });
  if (status == Status::kOk) return {};
  if (status == Status::kAgain) return fail(late("it did not say who the others are"));
  aborted_ = is_abort(error);
  return fail(make_error(Status::kRemote, error.code,
                         "rendezvous: %s gave up before all ranks had come (its log says why): %s",
                         host().c_str(), error.what.c_str()));
}

Result<std::vector<Card>> Guest::take_verdict() {
  Verdict verdict;
  auto received = receive(bytes_of(verdict));
  if (!received) return fail(std::move(received.error()));
  const bool fits = verdict.cards == 0 || verdict.cards == own_.ranks;
  if (!valid(verdict.prefix, MessageType::kVerdict) || !fits) {
    return fail(make_error(Status::kRemote, 0,
                           "rendezvous: %s sent no verdict that can be (%u "
                           "cards, %u ranks)",
                           host().c_str(), verdict.cards, own_.ranks));
  }
  std::vector<Card> cards(verdict.cards);
  Mac mac{};
  received = receive(std::as_writable_bytes(std::span(cards)));
  if (received) received = receive(mac);
  if (received) received = check(verdict, std::as_bytes(std::span(cards)), mac);
  if (!received) return fail(std::move(received.error()));
  return cards;
}

Result<void> Guest::check(const Verdict& verdict, std::span<const std::byte> cards,
                          const Mac& mac) {
  std::vector<std::byte> text(sizeof verdict + cards.size());
  std::memcpy(text.data(), &verdict, sizeof verdict);
  std::copy(cards.begin(), cards.end(), text.begin() + sizeof verdict);
  auto proven =
      proves({meeting_.key, greeting_.nonce, joining_.nonce}, MessageType::kVerdict, text, mac);
  if (!proven) return fail(std::move(proven.error()));
  if (!*proven) {
    return fail(make_error(Status::kRemote, 0,
                           "rendezvous: %s does not have our key: give all ranks the same "
                           "NCCL_SLIME_SWITCH_KEY_FILE",
                           host().c_str()));
  }
  if (verdict.cards != 0) return {};
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

Result<std::vector<Card>> join_meeting(const Meeting& meeting, const Card& own) {
  return Guest(meeting, own).run();
}

}  // namespace slime::aggregation
