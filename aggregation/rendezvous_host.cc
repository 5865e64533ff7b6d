// Rank 0's end of a rendezvous.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "aggregation/rendezvous.h"
#include "base/log.h"
#include "rendezvous/connect.h"
#include "rendezvous/lobby.h"

namespace slime::aggregation {
namespace {

using rendezvous::Lobby;
using rendezvous::Visitor;

struct Joiner : Visitor {
  explicit Joiner(Accepted accepted) : connection(std::move(accepted.fd)) { peer = accepted.peer; }
  int fd() const { return connection.get(); }
  void abort() { abort_connection(std::move(connection)); }

  Fd connection;
  Greeting greeting;
  Joining joining;
  size_t greeted = 0, joined = 0, told = 0;  // bytes of greeting, joining and verdict
  std::vector<std::byte> verdict;
};

// States of a connection: in the lobby until its Joining is whole and proves a rank of the group,
// then in members_ until the verdict; it leaves either when it is turned away. Thread rules: one
// thread, in run().
class Gathering final : private Lobby<Joiner> {
 public:
  Gathering(const MeetingPoint& point, const Introduction& own, Fd listener)
      : Lobby(std::move(listener), point.patience_ns, point.clock), point_(point), own_(own) {}

  Result<std::vector<Introduction>> run();

 private:
  Result<void> gather();
  Result<void> tell_all();
  std::vector<Introduction> introductions() const;
  Status prepare(Joiner* joiner, Error* error) override;
  Status read(Joiner* joiner, Error* error) override;
  void turn_away(Joiner* joiner, const Error& why) override;
  void warn(StrangerLog* log, const std::string& who);
  bool is_gone(const Joiner& member);
  void refuse(Joiner* joiner, const Error& why);
  void wait() const;
  Result<void> check(const Joiner& joiner) const;
  Result<void> prepare_verdict(Joiner* joiner, const Verdict& verdict,
                               std::span<const Introduction> introductions) const;
  const Joiner* member_of(uint32_t rank) const;
  std::string missing() const;
  bool is_late() const { return clock_.now_ns() >= point_.deadline_ns; }

  const MeetingPoint& point_;
  const Introduction& own_;
  std::vector<Joiner> members_;
  std::string last_refusal_;
  StrangerLog strangers_, gone_;  // gone_: members that went away
};

Result<std::vector<Introduction>> Gathering::run() {
  auto done = gather();
  // Members are told why; to others the port is closed.
  if (!done) {
    for (Joiner& member : members_) refuse(&member, done.error());
  }
  if (done) done = tell_all();
  if (!done) return fail(std::move(done.error()));
  return introductions();
}

std::vector<Introduction> Gathering::introductions() const {
  std::vector<Introduction> all(own_.ranks);
  all[0] = own_;
  for (const Joiner& member : members_) {
    all[member.joining.introduction.rank] = member.joining.introduction;
  }
  return all;
}

Result<void> Gathering::gather() {
  for (;;) {
    const bool late = is_late();  // read all sockets once more before a time-out
    std::erase_if(members_, [this](const Joiner& member) { return is_gone(member); });
    Error error;
    const Status status = look(&error);
    if (status != Status::kOk && status != Status::kAgain) return fail(std::move(error));
    const std::string who = missing();
    if (who.empty()) return {};
    if (late) {
      return fail(make_error(
          Status::kTimeout, 0, "rendezvous at %s: rank %s of %u did not come in time%s%s%s",
          point_.address.to_string().c_str(), who.c_str(), own_.ranks,
          last_refusal_.empty() ? "; look at their logs" : "; last turned away: ",
          last_refusal_.c_str(), strangers_.summary().c_str()));
    }
    wait();
  }
}

Status Gathering::prepare(Joiner* joiner, Error* error) {
  auto nonce = random_nonce();
  if (!nonce) {
    *error = std::move(nonce.error());
    return error->status;
  }
  joiner->greeting.nonce = *nonce;
  joiner->greeting.key_wanted = point_.key.empty() ? 0 : 1;
  return Status::kOk;
}

void Gathering::wait() const {
  std::vector<pollfd> waited;
  add_to(&waited);
  for (const Joiner& member : members_) waited.push_back({member.fd(), POLLIN, 0});
  (void)::poll(waited.data(), waited.size(), rendezvous::kPollMs);
}

// A member sends nothing more: all that can be read is that it has closed the connection.
bool Gathering::is_gone(const Joiner& member) {
  std::byte more;
  const ssize_t count = ::recv(member.fd(), &more, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  warn(&gone_, member.peer.to_string() + ": it went away again");
  return true;
}

Status Gathering::read(Joiner* joiner, Error* error) {
  const bool greeted_before = joiner->greeted == sizeof joiner->greeting;
  Status status =
      send_message(joiner->connection, bytes_of(joiner->greeting), &joiner->greeted, error);
  if (status == Status::kOk) {
    // From now on it is the joiner that is waited for.
    if (!greeted_before) joiner->deadline_ns = clock_.now_ns() + point_.patience_ns;
    status = receive_message(joiner->connection, bytes_of(joiner->joining), &joiner->joined, error);
  }
  if (status != Status::kOk) return status;
  if (auto checked = check(*joiner); !checked) {
    *error = std::move(checked.error());
    return error->status;
  }
  members_.push_back(std::move(*joiner));
  return Status::kOk;
}

Result<void> Gathering::check(const Joiner& joiner) const {
  const Joining& joining = joiner.joining;
  if (!valid(joining.prefix, MessageType::kJoining)) {
    return fail(make_error(Status::kRemote, 0, "it speaks another protocol"));
  }
  const MacContext context{point_.key, joiner.greeting.nonce, joining.nonce};
  const auto text = bytes_of(joining).first(sizeof joining - sizeof(Mac));
  auto proven = proves(context, MessageType::kJoining, text, joining.mac);
  if (!proven) return fail(std::move(proven.error()));
  if (!*proven) {
    return fail(make_error(Status::kRemote, 0,
                           "it does not have our key: give all ranks the same "
                           "NCCL_SLIME_SWITCH_KEY_FILE"));
  }
  auto member = check_member(joining.introduction, own_, "it");
  if (!member) return member;
  const Joiner* const first = member_of(joining.introduction.rank);
  if (first != nullptr || joining.introduction.rank == own_.rank) {
    return fail(make_error(Status::kInvalid, 0,
                           "it says that it is rank %u, which has come already (%s); give every "
                           "rank a number of its own",
                           joining.introduction.rank,
                           first ? first->peer.to_string().c_str() : "this is rank 0"));
  }
  return {};
}

const Joiner* Gathering::member_of(uint32_t rank) const {
  for (const Joiner& member : members_) {
    if (member.joining.introduction.rank == rank) return &member;
  }
  return nullptr;
}

std::string Gathering::missing() const {
  std::string who;
  for (uint32_t rank = 1; rank < own_.ranks; ++rank) {
    if (!member_of(rank)) who += (who.empty() ? "" : ", ") + std::to_string(rank);
  }
  return who;
}

void Gathering::warn(StrangerLog* log, const std::string& who) {
  const auto end = log->turned_away(clock_.now_ns());
  if (!end) return;
  SLIME_WARN("rendezvous at %s: turned away %s%s", point_.address.to_string().c_str(), who.c_str(),
             end->c_str());
}

void Gathering::turn_away(Joiner* joiner, const Error& why) {
  const std::string text = joiner->peer.to_string() + ": " + why.what;
  warn(&strangers_, text);
  if (joiner->joined < sizeof joiner->joining) return;
  last_refusal_ = text;
  refuse(joiner, why);
}

// Sends what the socket takes at once, and does not wait.
void Gathering::refuse(Joiner* joiner, const Error& why) {
  Verdict verdict;
  verdict.status = static_cast<uint32_t>(why.status);
  std::snprintf(verdict.reason.data(), verdict.reason.size(), "%s", why.what.c_str());
  Error error;
  if (!prepare_verdict(joiner, verdict, {})) return;
  (void)send_message(joiner->connection, joiner->verdict, &joiner->told, &error);
}

Result<void> Gathering::prepare_verdict(Joiner* joiner, const Verdict& verdict,
                                        std::span<const Introduction> introductions) const {
  const auto append = [joiner](std::span<const std::byte> bytes) {
    joiner->verdict.insert(joiner->verdict.end(), bytes.begin(), bytes.end());
  };
  append(bytes_of(verdict));
  append(std::as_bytes(introductions));
  const MacContext context{point_.key, joiner->greeting.nonce, joiner->joining.nonce};
  auto mac = sign(context, MessageType::kVerdict, joiner->verdict);
  if (!mac) return fail(std::move(mac.error()));
  append(*mac);
  return {};
}

Result<void> Gathering::tell_all() {
  const std::vector<Introduction> all = introductions();
  Verdict verdict;
  verdict.introductions = own_.ranks;
  for (Joiner& member : members_) {
    auto prepared = prepare_verdict(&member, verdict, all);
    if (!prepared) return prepared;
  }
  for (Joiner& member : members_) {
    Error error;
    const Status status = rendezvous::try_until(
        clock_, point_.deadline_ns, member.connection, POLLOUT,
        [&] { return send_message(member.connection, member.verdict, &member.told, &error); });
    if (status == Status::kOk) continue;
    return fail(make_error(Status::kRemote, 0,
                           "rendezvous at %s: rank %u at %s cannot be told who the others are: %s",
                           point_.address.to_string().c_str(), member.joining.introduction.rank,
                           member.peer.to_string().c_str(), error.what.c_str()));
  }
  return {};
}

}  // namespace

Result<std::vector<Introduction>> gather_ranks(const MeetingPoint& point, const Introduction& own) {
  auto listener = listen_on(point.address);
  if (!listener) return fail(std::move(listener.error()));
  return Gathering(point, own, std::move(*listener)).run();
}

}  // namespace slime::aggregation
