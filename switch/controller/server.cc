#include "switch/controller/server.h"

#include <slime/log.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace slime::net {
namespace {

constexpr int kBacklog = 128;
constexpr int kAcceptsPerTurn = 64;
constexpr int kEventsPerTurn = 64;
constexpr uint64_t kPauseNs = 100'000'000;
constexpr uint64_t kMaxWaitMs = 1000;

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(Controller& controller,
                                                           ServerOptions options) {
  if (!options.key.empty()) {
    if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  }
  std::unique_ptr<ControlServer> server(new ControlServer(controller, std::move(options)));
  auto listener = listen_on(server->options_.listen, kBacklog);
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

// What came while this process was held up is read before anybody is called late.
void ControlServer::run() {
  const uint64_t looked_ns = controller_.now_ns();
  epoll_event events[kEventsPerTurn];
  const int count = epoll_wait(poller_.get(), events, kEventsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == listener_.get()) {
      accept_all();
    } else {
      advance(events[i].data.fd);
    }
  }
  end_late(looked_ns);
  controller_.expire(looked_ns);
  if (paused_until_ns_ != 0 && controller_.now_ns() >= paused_until_ns_) resume_listener();
}

void ControlServer::accept_all() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Accepted accepted;
    Error error;
    const Status status = accept_one(listener_, &accepted, &error);
    if (status == Status::kAgain) return;
    if (status != Status::kOk) {
      SLIME_WARN("control channel: %s", error.what.c_str());
      return pause_listener();
    }
    admit(std::move(accepted));
  }
}

// Out of descriptors, the connection stays in the backlog and poll would say so without end.
void ControlServer::pause_listener() {
  (void)epoll_ctl(poller_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  paused_until_ns_ = controller_.now_ns() + kPauseNs;
}

void ControlServer::resume_listener() {
  paused_until_ns_ = watch(listener_.get(), EPOLLIN, false) ? 0 : controller_.now_ns() + kPauseNs;
}

void ControlServer::admit(Accepted accepted) {
  ControlCounters& counters = controller_.counters();
  if (connections_.size() >= options_.max_connections) {
    counters.connections_refused.add();
    const auto frame = control::encode(
        control::Refused{control::Refusal::kFull,
                         "all " + std::to_string(options_.max_connections) +
                             " control connections (control.max_connections) are in use"},
        0);
    size_t done = 0;
    Error error;
    (void)send_message(accepted.fd, frame, &done, &error);  // fits an empty socket buffer
    return;
  }
  const int fd = accepted.fd.get();
  if (!watch(fd, EPOLLIN, false)) return;
  (void)set_nodelay(accepted.fd);
  counters.connections.add();
  connections_[fd] = std::make_unique<Connection>(std::move(accepted.fd), accepted.peer, options_,
                                                  controller_.now_ns());
}

void ControlServer::advance(int fd) {
  const auto at = connections_.find(fd);
  if (at == connections_.end()) return;
  // Closing takes it off the poller (epoll(7), question 6).
  if (!at->second->advance(controller_) ||
      !watch(fd, at->second->wants_to_write() ? EPOLLOUT : EPOLLIN, true)) {
    connections_.erase(at);
  }
}

void ControlServer::end_late(uint64_t looked_ns) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const Connection& connection = *at->second;
    if (connection.deadline_ns() > looked_ns) {
      ++at;
      continue;
    }
    controller_.counters().connections_late.add();
    SLIME_INFO("control connection from %s: late with %s, closed",
               connection.peer().to_string().c_str(), connection.late_with());
    at = connections_.erase(at);
  }
}

}  // namespace slime::net
