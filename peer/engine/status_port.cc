#include "peer/engine/status_port.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace slime {
namespace {

std::atomic<uint32_t> engines = 0;  // of this process

bool is_of_this_user(int socket) {
  ucred caller = {};
  socklen_t bytes = sizeof caller;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &caller, &bytes) != 0) return false;
  return caller.uid == ::geteuid() || caller.uid == 0;
}

}  // namespace

Result<std::unique_ptr<StatusPort>> StatusPort::open(Report report) {
  const std::string name = kPrefix + std::to_string(::geteuid()) + "-" +
                           std::to_string(::getpid()) + "-" + std::to_string(engines++);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) return fail(descriptor_error(errno, "socket"));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(listener.get(), kCallersATurn) != 0) {
    return fail(system_error(errno, "the socket for slime-info"));
  }
  return std::unique_ptr<StatusPort>(new StatusPort(std::move(listener), std::move(report)));
}

bool StatusPort::answer() {
  for (int count = 0; count < kCallersATurn; ++count) {
    const Fd caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!caller) return count > 0;
    if (!is_of_this_user(caller.get())) continue;
    const std::string text = report_();
    (void)::send(caller.get(), text.data(), std::min(text.size(), kMostBytes), MSG_NOSIGNAL);
  }
  return true;
}

}  // namespace slime
