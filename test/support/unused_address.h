// Where nobody listens, yet.
#pragma once

#include <sys/socket.h>

#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "base/net/socket.h"

namespace slime::test {

// "127.0.0.1:port", which connections are refused at until somebody listens there by name. A port
// that was let go would be anybody's, whom the kernel next gives a port of its choice. It gives
// none to which a socket is bound, though a listener that names it may have it beside one that does
// not listen (SO_REUSEADDR, socket(7)). So it is held, until 256 newer ones have been taken.
inline std::string unused_address() {
  static std::mutex mutex;
  static std::deque<Fd> held;
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const SocketAddress any = SocketAddress::parse("127.0.0.1:0").value();
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), any.data(), any.size()) != 0) {
    throw std::system_error(errno, std::generic_category(), "a port for a test");
  }
  const std::string address = local_address(fd).value().to_string();
  const std::lock_guard lock(mutex);
  held.push_back(std::move(fd));
  if (held.size() > 256) held.pop_front();
  return address;
}

}  // namespace slime::test
