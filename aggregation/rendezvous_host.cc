// Rank 0's end of a rendezvous.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <list>
#include <utility>

#include "aggregation/rendezvous.h"
#include "aggregation/rendezvous_wire.h"
#include "base/log.h"
#include "base/net/visitors.h"

namespace slime::aggregation {
namespace {

constexpr int kPollMs = 20;

struct Visitor {
  Fd fd;
  SocketAddress peer;
  uint64_t since_ns = 0;
  uint64_t deadline_ns = 0;
  Greeting greeting;
  Joining joining;
  size_t greeted = 0, joined = 0, told = 0;  // bytes
  bool member = false;
  std::vector<std::byte> verdict;
};

class Host final : private VisitorPort {
 public:
  Host(const Meeting& meeting, const Card& own) : meeting_(meeting), own_(own) {}
  Result<std::vector<Card>> run();

 private:
  Result<void> gather();
  Result<void> tell_all();
  void tell_failure(const Error& why);
  void refuse(Visitor& visitor, const Error& why);
  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;
  void wait() const;
  bool stays(Visitor& visitor);
  Result<void> step(Visitor& visitor);  // an error: turn it away
  Result<void> take_joining(Visitor& visitor);
  Result<void> prepare(Visitor& visitor, const Verdict& verdict, std::span<const Card> cards);
  void turn_away(Visitor& visitor, const Error& why);
  Visitor* member_of(uint32_t rank);
  std::string missing();
  bool is_late() const { return meeting_.clock.now_ns() >= meeting_.deadline_ns; }

  const Meeting& meeting_;
  const Card& own_;
  Fd listener_;
  std::list<Visitor> visitors_;  // oldest first
  std::string last_refusal_;
  StrangerLog strangers_, gone_;  // gone_: members that went away
};

Result<std::vector<Card>> Host::run() {
  auto listener = listen_on(meeting_.address);
  if (!listener) return fail(std::move(listener.error()));
  listener_ = std::move(*listener);
  auto done = gather();
  if (!done) tell_failure(done.error());
  if (done) done = tell_all();
  if (!done) return fail(std::move(done.error()));
  std::vector<Card> cards(own_.ranks);
  cards[0] = own_;
  for (const Visitor& visitor : visitors_) {
    if (visitor.member) cards[visitor.joining.card.rank] = visitor.joining.card;
  }
  return cards;
}

Result<void> Host::gather() {
  for (;;) {
    const bool late = is_late();  // before the look: who was held up looks once more
    visitors_.remove_if([this](Visitor& visitor) { return !stays(visitor); });
    Error error;
    const Status accepted = accept_visitors(listener_, meeting_.clock.now_ns(), &error);
    if (accepted != Status::kOk && accepted != Status::kAgain) return fail(std::move(error));
    const std::string who = missing();
    if (who.empty()) return {};
    if (late) {
      return fail(make_error(
          Status::kTimeout, 0, "rendezvous at %s: rank %s of %u did not come in time%s%s%s",
          meeting_.address.to_string().c_str(), who.c_str(), own_.ranks,
          last_refusal_.empty() ? "; look at their logs" : "; last turned away: ",
          last_refusal_.c_str(), strangers_.summary().c_str()));
    }
    wait();
  }
}

std::vector<Visit> Host::visits() const {
  std::vector<Visit> all;
  for (const Visitor& visitor : visitors_) {
    if (!visitor.member) all.push_back({visitor.peer, visitor.since_ns});
  }
  return all;
}

void Host::drop_visit(size_t index) {
  const auto dropped = std::ranges::find_if(
      visitors_, [&index](const Visitor& visitor) { return !visitor.member && index-- == 0; });
  turn_away(*dropped, make_error(Status::kRemote, 0,
                                 "it did not say who it is, and others wait for its place"));
  abort_connection(std::move(dropped->fd));
  visitors_.erase(dropped);
}

Status Host::admit(Accepted accepted, Error* error) {
  auto nonce = random_nonce();
  if (!nonce) {
    *error = std::move(nonce.error());
    return error->status;
  }
  Visitor& visitor = visitors_.emplace_back();
  visitor.fd = std::move(accepted.fd);
  visitor.peer = accepted.peer;
  visitor.since_ns = meeting_.clock.now_ns();
  visitor.deadline_ns = visitor.since_ns + meeting_.patience_ns;
  visitor.greeting.nonce = *nonce;
  visitor.greeting.key_wanted = meeting_.key.empty() ? 0 : 1;
  if (!stays(visitor)) visitors_.pop_back();
  return Status::kOk;
}

bool Host::stays(Visitor& visitor) {
  const auto stepped = step(visitor);
  if (!stepped) turn_away(visitor, stepped.error());
  return stepped.has_value();
}

void Host::wait() const {
  std::vector<pollfd> waited{{listener_.get(), POLLIN, 0}};
  for (const Visitor& visitor : visitors_) waited.push_back({visitor.fd.get(), POLLIN, 0});
  (void)::poll(waited.data(), waited.size(), kPollMs);
}

Result<void> Host::step(Visitor& visitor) {
  Error error;
  if (visitor.member) {  // says nothing more; only its end can be heard
    std::byte more;
    const ssize_t count = ::recv(visitor.fd.get(), &more, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool waits = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (waits) return {};
    return fail(make_error(Status::kRemote, 0, "it went away again"));
  }
  const bool late = meeting_.clock.now_ns() >= visitor.deadline_ns;
  const bool greeted_before = visitor.greeted == sizeof visitor.greeting;
  Status status = send_message(visitor.fd, bytes_of(visitor.greeting), &visitor.greeted, &error);
  if (status == Status::kOk) {
    // From now on it is the visitor who is waited for.
    if (!greeted_before) visitor.deadline_ns = meeting_.clock.now_ns() + meeting_.patience_ns;
    status = receive_message(visitor.fd, bytes_of(visitor.joining), &visitor.joined, &error);
  }
  if (status == Status::kOk) return take_joining(visitor);
  if (status != Status::kAgain) return fail(std::move(error));
  if (!late || meeting_.clock.now_ns() < visitor.deadline_ns) return {};
  return fail(make_error(Status::kTimeout, 0, "it connected and did not say who it is in time"));
}

Result<void> Host::take_joining(Visitor& visitor) {
  const Joining& joining = visitor.joining;
  if (!valid(joining.prefix, MessageType::kJoining)) {
    return fail(make_error(Status::kRemote, 0, "it speaks another protocol"));
  }
  const Seal seal{meeting_.key, visitor.greeting.nonce, joining.nonce};
  const auto text = bytes_of(joining).first(sizeof joining - sizeof(Mac));
  auto proven = proves(seal, MessageType::kJoining, text, joining.mac);
  if (!proven) return fail(std::move(proven.error()));
  if (!*proven) {
    return fail(make_error(Status::kRemote, 0,
                           "it does not have our key: give all ranks the same "
                           "NCCL_SLIME_SWITCH_KEY_FILE"));
  }
  auto member = check_member(joining.card, own_, "it");
  if (!member) return member;
  const Visitor* const first = member_of(joining.card.rank);
  if (first != nullptr || joining.card.rank == own_.rank) {
    return fail(make_error(Status::kInvalid, 0,
                           "it says that it is rank %u, which has come already (%s); give every "
                           "rank a number of its own",
                           joining.card.rank,
                           first ? first->peer.to_string().c_str() : "this is rank 0"));
  }
  visitor.member = true;
  return {};
}

Visitor* Host::member_of(uint32_t rank) {
  for (Visitor& visitor : visitors_) {
    if (visitor.member && visitor.joining.card.rank == rank) return &visitor;
  }
  return nullptr;
}

std::string Host::missing() {
  std::string who;
  for (uint32_t rank = 1; rank < own_.ranks; ++rank) {
    if (!member_of(rank)) who += (who.empty() ? "" : ", ") + std::to_string(rank);
  }
  return who;
}

void Host::turn_away(Visitor& visitor, const Error& why) {
  const std::string text = visitor.peer.to_string() + ": " + why.what;
  StrangerLog& log = visitor.member ? gone_ : strangers_;
  if (const auto end = log.turned_away(meeting_.clock.now_ns())) {
    SLIME_WARN("rendezvous at %s: turned away %s%s", meeting_.address.to_string().c_str(),
               text.c_str(), end->c_str());
  }
  if (visitor.joined < sizeof visitor.joining || visitor.member) return;
  last_refusal_ = text;
  refuse(visitor, why);
}

// Those that have come; the others hear nothing but that nobody is there any more.
void Host::tell_failure(const Error& why) {
  for (Visitor& visitor : visitors_) {
    if (visitor.member) refuse(visitor, why);
  }
}

// Says why, if it takes it at once: nobody is waited for.
void Host::refuse(Visitor& visitor, const Error& why) {
  Verdict verdict;
  verdict.status = static_cast<uint32_t>(why.status);
  std::snprintf(verdict.reason.data(), verdict.reason.size(), "%s", why.what.c_str());
  Error error;
  if (!prepare(visitor, verdict, {})) return;
  (void)send_message(visitor.fd, visitor.verdict, &visitor.told, &error);
}

Result<void> Host::prepare(Visitor& visitor, const Verdict& verdict, std::span<const Card> cards) {
  const auto append = [&visitor](std::span<const std::byte> bytes) {
    visitor.verdict.insert(visitor.verdict.end(), bytes.begin(), bytes.end());
  };
  append(bytes_of(verdict));
  append(std::as_bytes(cards));
  const Seal seal{meeting_.key, visitor.greeting.nonce, visitor.joining.nonce};
  auto mac = sign(seal, MessageType::kVerdict, visitor.verdict);
  if (!mac) return fail(std::move(mac.error()));
  append(*mac);
  return {};
}

Result<void> Host::tell_all() {
  visitors_.remove_if([](const Visitor& visitor) { return !visitor.member; });
  std::vector<Card> cards(own_.ranks);
  cards[0] = own_;
  for (const Visitor& visitor : visitors_) cards[visitor.joining.card.rank] = visitor.joining.card;
  Verdict verdict;
  verdict.cards = own_.ranks;
  for (Visitor& visitor : visitors_) {
    auto prepared = prepare(visitor, verdict, cards);
    if (!prepared) return prepared;
  }
  for (Visitor& visitor : visitors_) {
    Error error;
    Status status = Status::kAgain;
    while ((status = send_message(visitor.fd, visitor.verdict, &visitor.told, &error)) ==
               Status::kAgain &&
           !is_late()) {
      wait();
    }
    if (status == Status::kOk) continue;
    return fail(make_error(Status::kRemote, 0,
                           "rendezvous at %s: rank %u at %s cannot be told who the others are: %s",
                           meeting_.address.to_string().c_str(), visitor.joining.card.rank,
                           visitor.peer.to_string().c_str(), error.what.c_str()));
  }
  return {};
}

}  // namespace

Result<std::vector<Card>> host_meeting(const Meeting& meeting, const Card& own) {
  return Host(meeting, own).run();
}

}  // namespace slime::aggregation
