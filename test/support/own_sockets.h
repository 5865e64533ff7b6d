// The sockets of this process, for tests that ask the kernel how they are set up.
#pragma once

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace slime::test {

inline std::optional<int> socket_option(int fd, int level, int option) {
  int value = 0;
  socklen_t bytes = sizeof value;
  if (getsockopt(fd, level, option, &value, &bytes) != 0) return std::nullopt;
  return value;
}

// Descriptors of the sockets of this type; of TCP the connected ones.
inline std::vector<int> own_sockets(int type = SOCK_STREAM) {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"), closedir);
  for (const dirent* entry = readdir(all.get()); entry != nullptr; entry = readdir(all.get())) {
    const int fd = std::atoi(entry->d_name);
    const int domain = socket_option(fd, SOL_SOCKET, SO_DOMAIN).value_or(AF_UNSPEC);
    if (domain != AF_INET && domain != AF_INET6) continue;
    if (socket_option(fd, SOL_SOCKET, SO_TYPE) != type) continue;
    sockaddr_in6 peer{};
    socklen_t bytes = sizeof peer;
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0;
    if (type != SOCK_STREAM || connected) found.push_back(fd);
  }
  return found;
}

// How many sockets of this type send with this TOS byte.
inline size_t count_marked(int traffic_class, int type = SOCK_STREAM) {
  size_t count = 0;
  for (const int fd : own_sockets(type)) {
    const bool ipv6 = socket_option(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6;
    const auto value =
        ipv6 ? socket_option(fd, IPPROTO_IPV6, IPV6_TCLASS) : socket_option(fd, IPPROTO_IP, IP_TOS);
    count += value == traffic_class;
  }
  return count;
}

}  // namespace slime::test
