#include "switch/controller/server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/log.h"

namespace slime::net {
namespace {

constexpr int kEventsPerTurn = 64;
constexpr uint64_t kPauseNs = 100'000'000;
constexpr uint64_t kMaxWaitMs = 1000;

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(Controller& controller,
                                                           ServerOptions options) {
  if (options.keys.wanted()) {
    if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  }
  std::unique_ptr<ControlServer> server(new ControlServer(controller, std::move(options)));
  auto listener = listen_on(server->options_.listen);
  if (!listener) return fail(std::move(listener.error()));
  server->listener_ = std::move(*listener);
  auto address = local_address(server->listener_);
  if (!address) return fail(std::move(address.error()));
  server->address_ = *address;
  server->poller_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!server->poller_ || !server->watch(server->listener_.get(), EPOLLIN, false)) {
    return fail(system_error(errno, "epoll for the control channel on %s",
                             server->address_.to_string().c_str()));
  }
  return server;
}

void ControlServer::set_keys(KeyRing keys) {
  options_.keys = std::move(keys);
  std::vector<int> outdated;
  for (const auto& [fd, connection] : connections_) {
    if (!connection->holds_key_of(options_.keys)) outdated.push_back(fd);
  }
  for (const int fd : outdated) remove(fd);
}

bool ControlServer::watch(int fd, uint32_t events, bool known) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return epoll_ctl(poller_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

int ControlServer::timeout_ms() const {
  const uint64_t now = controller_.now_ns();
  uint64_t next = std::min(controller_.next_expiry_ns(), now + kMaxWaitMs * 1'000'000);
  if (paused_until_ns_ != 0) next = std::min(next, paused_until_ns_);
  for (const auto& [fd, connection] : connections_) {
    next = std::min(next, connection->deadline_ns());
  }
  return next <= now ? 1 : static_cast<int>((next - now) / 1'000'000 + 1);
}

// The time is read first, then the sockets, then the deadlines are compared with that time: what
// came during a pause of this process counts as in time.
void ControlServer::run() {
  const uint64_t now_ns = controller_.now_ns();
  epoll_event events[kEventsPerTurn];
  const int count = epoll_wait(poller_.get(), events, kEventsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == listener_.get()) {
      accept_all();
    } else {
      advance(events[i].data.fd);
    }
  }
  end_late(now_ns);
  controller_.expire(now_ns);
  if (paused_until_ns_ != 0 && controller_.now_ns() >= paused_until_ns_) resume_listener();
}

void ControlServer::accept_all() {
  Error error;
  const Status status = accept_visitors(listener_, controller_.now_ns(), &error);
  if (status == Status::kOk) return;
  if (status == Status::kAgain) return pause_listener(kGraceNs);
  SLIME_WARN("control channel: %s", error.what.c_str());
  pause_listener(kPauseNs);
}

// A connection that cannot be accepted stays in the backlog, and epoll would report the listener
// again at once. So the listener is not watched for a while.
void ControlServer::pause_listener(uint64_t pause_ns) {
  (void)epoll_ctl(poller_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  paused_until_ns_ = controller_.now_ns() + pause_ns;
}

void ControlServer::resume_listener() {
  paused_until_ns_ = watch(listener_.get(), EPOLLIN, false) ? 0 : controller_.now_ns() + kPauseNs;
}

std::vector<Visit> ControlServer::visits() const {
  std::vector<Visit> all;
  for (const int fd : visitors_) all.push_back(connections_.at(fd)->visit());
  return all;
}

void ControlServer::drop_visit(size_t index) {
  const int fd = visitors_[index];
  reset(fd, std::string("late with ") + connections_.at(fd)->late_with() +
                " while others wait for its place");
}

// To make room for another.
void ControlServer::reset(int fd, const std::string& why) {
  Connection& connection = *connections_.at(fd);
  controller_.counters().connections_refused.add();
  if (const auto end = strangers_.turned_away(controller_.now_ns())) {
    SLIME_INFO("control connection from %s: %s, reset%s", connection.peer().to_string().c_str(),
               why.c_str(), end->c_str());
  }
  connection.abort();
  remove(fd);
}

std::optional<std::string> ControlServer::make_place(const Caller& caller) {
  if (connections_.size() - visitors_.size() < options_.max_connections) return {};
  struct Share {
    size_t count = 0;
    const Connection* oldest = nullptr;
    int fd = -1;  // of the oldest
  };
  std::map<std::string, Share> shares;
  for (const auto& [fd, connection] : connections_) {
    if (!connection->proven()) continue;
    Share& share = shares[connection->caller().tenant];
    ++share.count;
    if (share.oldest && share.oldest->visit().since_ns <= connection->visit().since_ns) continue;
    share.oldest = connection.get();
    share.fd = fd;
  }
  const size_t own = shares[caller.tenant].count;
  shares.erase("");  // the operators'
  std::pair<std::string, Share> most;
  for (const auto& one : shares) {
    if (one.second.count > most.second.count) most = one;
  }
  if (most.second.count > (caller.is_operator() ? 0 : own + 1)) {
    reset(most.second.fd, "tenant " + most.first + " has " + std::to_string(most.second.count) +
                              " connections, more than others who need a place");
    return {};
  }
  return "all " + std::to_string(options_.max_connections) +
         " control connections (control.max_connections) are in use, and " +
         (caller.is_operator() ? "the operators have " : "tenant " + caller.tenant + " has ") +
         std::to_string(own) +
         " of them; close some, or let the switch's operators raise control.max_connections";
}

Status ControlServer::admit(Accepted accepted, Error* /*error*/) {
  const int fd = accepted.fd.get();
  if (!watch(fd, EPOLLIN, false)) return Status::kOk;
  (void)set_nodelay(accepted.fd);
  controller_.counters().connections.add();
  ConnectionPlaces& places = *this;
  connections_[fd] = std::make_unique<Connection>(std::move(accepted), options_, places, strangers_,
                                                  controller_.now_ns());
  visitors_.push_back(fd);
  advance(fd);
  return Status::kOk;
}

// Closing the descriptor removes it from the poller, too (epoll(7), question 6).
void ControlServer::remove(int fd) {
  std::erase(visitors_, fd);
  connections_.erase(fd);
}

void ControlServer::advance(int fd) {
  const auto at = connections_.find(fd);
  if (at == connections_.end()) return;
  Connection& connection = *at->second;
  const bool proven = connection.proven();
  if (!connection.advance(controller_) ||
      !watch(fd, connection.wants_to_write() ? EPOLLOUT : EPOLLIN, true)) {
    return remove(fd);
  }
  if (!proven && connection.proven()) std::erase(visitors_, fd);
}

void ControlServer::end_late(uint64_t now_ns) {
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_) {
    if (connection->deadline_ns() <= now_ns) late.push_back(fd);
  }
  for (const int fd : late) {
    Connection& connection = *connections_.at(fd);
    controller_.counters().connections_late.add();
    if (const auto end = strangers_.turned_away(now_ns)) {
      SLIME_INFO("control connection from %s: late with %s, closed%s",
                 connection.peer().to_string().c_str(), connection.late_with(), end->c_str());
    }
    // By a reset, after which a client tries again: a network may have kept its request back.
    if (!connection.proven()) connection.abort();
    remove(fd);
  }
}

}  // namespace slime::net
