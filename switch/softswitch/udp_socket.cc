#include "switch/softswitch/udp_socket.h"

#include <sys/time.h>

#include <cerrno>

#include "base/log.h"

namespace slime::net {
namespace {

// Tries to find free ports in a row. Needed only where the kernel chooses the first port: another
// process may have one of those that follow it.
constexpr int kAttempts = 64;

Error bind_error(int code, const SocketAddress& address) {
  Error error = system_error(code, "bind a UDP socket to %s", address.to_string().c_str());
  if (code == EADDRINUSE) {
    error.what += "; another process has this port: stop it, or listen on another block of ports";
  } else if (code == EADDRNOTAVAIL) {
    error.what += "; no interface of this host has the address: `ip address` lists them";
  } else if (code == EACCES) {
    error.what += "; ports below 1024 need CAP_NET_BIND_SERVICE";
  }
  return error;
}

// Buffers, and how long a receive call waits at most.
Result<void> set_up(const Fd& fd, uint64_t buffer_bytes, uint64_t receive_timeout_us) {
  const auto granted = set_buffers(fd, buffer_bytes);
  if (!granted) return fail(granted.error());
  if (*granted < buffer_bytes) {
    SLIME_WARN(
        "switch: socket buffers of %llu bytes were asked for and %llu granted: bursts may be lost; "
        "raise net.core.rmem_max and net.core.wmem_max",
        static_cast<unsigned long long>(buffer_bytes), static_cast<unsigned long long>(*granted));
  }
  const timeval limit{.tv_sec = static_cast<time_t>(receive_timeout_us / 1'000'000),
                      .tv_usec = static_cast<suseconds_t>(receive_timeout_us % 1'000'000)};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
    return fail(system_error(errno, "setsockopt SO_RCVTIMEO"));
  }
  return {};
}

// Without SO_REUSEADDR: with it, a second switch could take over the port of a running one
// (socket(7), ip(7)).
Result<Fd> bind_udp(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail(system_error(errno, "socket for %s", address.to_string().c_str()));
  if (bind(fd.get(), address.data(), address.size()) != 0) return fail(bind_error(errno, address));
  return fd;
}

// Socket 0 at the address, the others at the ports that follow.
Result<std::vector<Fd>> bind_block(SocketAddress address, uint32_t count) {
  std::vector<Fd> sockets;
  for (uint32_t index = 0; index < count; ++index) {
    auto fd = bind_udp(address);
    if (!fd) return fail(std::move(fd.error()));
    const auto local = local_address(*fd);
    if (!local) return fail(local.error());
    sockets.push_back(std::move(*fd));
    if (index + 1 == count) break;
    if (local->port() == 65535) {
      return fail(make_error(Status::kConfig, EADDRINUSE,
                             "%u shards from %s on need ports beyond 65535; begin lower", count,
                             address.to_string().c_str()));
    }
    address.set_port(static_cast<uint16_t>(local->port() + 1));
  }
  return sockets;
}

}  // namespace

Result<std::vector<Fd>> bind_udp_block(const SocketAddress& address, uint32_t count,
                                       uint64_t buffer_bytes, uint64_t receive_timeout_us) {
  auto sockets = bind_block(address, count);
  for (int attempt = 1; attempt < kAttempts && address.port() == 0; ++attempt) {
    if (sockets || sockets.error().code != EADDRINUSE) break;
    sockets = bind_block(address, count);
  }
  if (!sockets) return sockets;
  for (const Fd& fd : *sockets) {
    if (auto done = set_up(fd, buffer_bytes, receive_timeout_us); !done) {
      return fail(std::move(done.error()));
    }
  }
  return sockets;
}

}  // namespace slime::net
