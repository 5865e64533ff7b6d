// Makes connections. No function waits: every socket is non-blocking from its creation.
#include "base/net/socket.h"

#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace slime {
namespace {

constexpr int kSocketType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
// Connections in a row that broke between TCP's handshake and accept(). More come from a port scan.
constexpr int kMaxBroken = 16;

const char* advice(int code) {
  switch (code) {
    case EADDRINUSE:
      return "; another process has this address, choose another port";
    case EADDRNOTAVAIL:
      return "; no interface of this host has this address, or no port is free";
    case EACCES:
    case EPERM:
      return "; a firewall, a security module or the privileged port forbids it";
    case ECONNREFUSED:
      return "; nobody listens there: has the peer died or not started yet?";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "; check routes and firewalls, or choose interfaces that reach the "
             "peer with NCCL_SLIME_IFNAME";
    default:
      return descriptor_advice(code);
  }
}

Error socket_error(int code, const char* operation, const SocketAddress& address) {
  Error error = system_error(code, "%s %s", operation, address.to_string().c_str());
  error.what += advice(code);
  return error;
}

// accept(2): "Linux accept() passes already-pending network errors on the new socket as an error
// code from accept()": these concern that connection, not the listener. EINTR only says to try
// again.
constexpr int kCodesOfOneConnection[] = {EINTR,       ECONNABORTED, ENETDOWN, EPROTO,
                                         ENOPROTOOPT, EHOSTDOWN,    ENONET,   EHOSTUNREACH,
                                         EOPNOTSUPP,  ENETUNREACH};

void set_flag(const Fd& fd, int level, int option) {
  const int on = 1;
  // These options are hints: without them the socket works, but less well.
  (void)setsockopt(fd.get(), level, option, &on, sizeof on);
}

// Where at most three packets are under way, the kernel's tries to send a lost one again come in
// equal pauses, six of them, before the pauses double (tcp(7), TCP_THIN_LINEAR_TIMEOUTS). Messages
// of a set-up are that small, and a few lost ones in a row would stop them for many seconds.
void resend_soon(const Fd& fd) { set_flag(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS); }

Result<SocketAddress> name_of(const Fd& fd, int (*ask)(int, sockaddr*, socklen_t*),
                              const char* call) {
  sockaddr_in6 address{};
  socklen_t bytes = sizeof address;
  if (ask(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
    return fail(system_error(errno, "%s of descriptor %d", call, fd.get()));
  }
  return SocketAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&address), bytes);
}

}  // namespace

Result<Fd> listen_on(const SocketAddress& address, int backlog) {
  Fd fd(socket(address.family(), kSocketType, 0));
  if (!fd) return fail(socket_error(errno, "socket for listening on", address));
  set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
  if (address.is_ipv6() && address.is_any()) {
    const int only_ipv6 = 0;
    (void)setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6);
  }
  resend_soon(fd);  // and the connections that it takes
  if (bind(fd.get(), address.data(), address.size()) != 0) {
    return fail(socket_error(errno, "bind to", address));
  }
  if (listen(fd.get(), backlog) != 0) return fail(socket_error(errno, "listen on", address));
  return fd;
}

Result<Fd> start_connect(const SocketAddress& peer, const ConnectOptions& options) {
  Fd fd(socket(peer.family(), kSocketType, 0));
  if (!fd) return fail(socket_error(errno, "socket for connecting to", peer));
  if (auto granted = set_buffers(fd, options.buffer_bytes); !granted) {
    return fail(std::move(granted.error()));
  }
  resend_soon(fd);
  const int segment = options.max_segment;
  if (segment > 0) {
    (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
  }
  if (!options.interface.empty() && !bind_to_interface(fd, options.interface)) {
    return fail(socket_error(errno, "binding to the interface for connecting to", peer));
  }
  if (const SocketAddress* const source = options.source; source != nullptr) {
    // The kernel chooses the port at connect(), when it knows both ends: many more are free then.
    if (source->port() == 0) set_flag(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
    if (bind(fd.get(), source->data(), source->size()) != 0) {
      return fail(socket_error(errno, "bind to", *source));
    }
  }
  if (connect(fd.get(), peer.data(), peer.size()) == 0) return fd;
  // EINTR: the attempt goes on by itself (connect(2)).
  if (errno == EINPROGRESS || errno == EINTR) return fd;
  return fail(socket_error(errno, "connect to", peer));
}

// A connect() is complete when the socket is writable; SO_ERROR then has its result (connect(2)).
Status finish_connect(const Fd& fd, const SocketAddress& peer, Error* error) {
  const auto give_up = [&](int code) {
    *error = socket_error(code, "connect to", peer);
    return error->status;
  };
  pollfd ready{fd.get(), POLLOUT, 0};
  const int count = poll(&ready, 1, 0);
  if (count == 0 || (count < 0 && errno == EINTR)) return Status::kAgain;
  if (count < 0) return give_up(errno);
  if ((ready.revents & POLLNVAL) != 0) return give_up(EBADF);
  int code = 0;
  socklen_t bytes = sizeof code;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &bytes) != 0) return give_up(errno);
  if (code != 0) return give_up(code);
  const auto local = local_address(fd);
  const auto remote = peer_address(fd);
  if (!local || !remote) return give_up(!local ? local.error().code : remote.error().code);
  // Without a listener, a port from the ephemeral range can meet itself: TCP's simultaneous open
  // (RFC 9293, 3.5) then connects the socket to itself.
  if (*local == *remote) return give_up(ECONNREFUSED);
  return Status::kOk;
}

Status accept_one(const Fd& listener, Accepted* accepted, Error* error) {
  for (int broken = 0; broken < kMaxBroken; ++broken) {
    sockaddr_in6 address{};
    socklen_t bytes = sizeof address;
    Fd fd(accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &bytes,
                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      auto peer = SocketAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&address), bytes);
      if (!peer) continue;  // gone already: Linux reports no address then
      *accepted = Accepted{std::move(fd), *peer};
      return Status::kOk;
    }
    const int code = errno;
    if (code == EAGAIN || code == EWOULDBLOCK) return Status::kAgain;
    if (std::ranges::count(kCodesOfOneConnection, code) > 0) continue;
    const auto local = local_address(listener);
    *error = socket_error(code, "accept on", local ? *local : SocketAddress());
    return error->status;
  }
  return Status::kAgain;
}

void abort_connection(Fd fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};  // socket(7), SO_LINGER
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

bool is_abort(const Error& error) { return error.code == ECONNRESET || error.code == EPIPE; }

bool bind_to_interface(const Fd& fd, const std::string& interface) {
  return ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                      static_cast<socklen_t>(interface.size())) == 0;
}

Result<SocketAddress> local_address(const Fd& fd) {
  return name_of(fd, getsockname, "getsockname");
}

bool is_within_host(const Fd& fd) {
  auto local = local_address(fd), peer = peer_address(fd);
  if (!local || !peer) return false;
  local->set_port(0);
  peer->set_port(0);
  return *local == *peer;
}

Result<SocketAddress> peer_address(const Fd& fd) { return name_of(fd, getpeername, "getpeername"); }

}  // namespace slime
