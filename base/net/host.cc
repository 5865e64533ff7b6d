#include "base/net/host.h"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

namespace slime {
namespace {

constexpr size_t kMostAddresses =
    16;  // of a name; a caller that tries more would try them too late

constexpr std::chrono::milliseconds kResolverPause{100};

// In turn one of the first address's IP version and one of the other, as long as there are both.
Addresses interleaved(const Addresses& found) {
  Addresses order, other;
  for (const SocketAddress& one : found) {
    (one.family() == found.front().family() ? order : other).push_back(one);
  }
  for (size_t i = 0; i < other.size(); ++i) {
    order.insert(order.begin() + static_cast<ptrdiff_t>(std::min(2 * i + 1, order.size())),
                 other[i]);
  }
  return order;
}

}  // namespace

Result<Addresses> resolve(const HostPort& host, const char* what) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = std::to_string(host.port);
  const int code = ::getaddrinfo(host.host.c_str(), port.c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  Addresses found;
  for (const addrinfo* one = code == 0 ? list : nullptr; one != nullptr; one = one->ai_next) {
    const auto address = SocketAddress::from_sockaddr(one->ai_addr, one->ai_addrlen);
    if (!address || found.size() == kMostAddresses || std::ranges::count(found, *address) > 0) {
      continue;
    }
    found.push_back(*address);
  }
  if (!found.empty()) return interleaved(found);
  const char* const why = code == EAI_SYSTEM ? std::strerror(errno)
                          : code != 0        ? ::gai_strerror(code)
                                             : "it has no address";
  return fail(make_error(Status::kConfig, code, "%s: \"%s\": %s; give it as host:port", what,
                         host.host.c_str(), why));
}

Result<Addresses> resolve(const std::string& text, uint16_t default_port, const char* what) {
  const auto parts = split_host_port(text, default_port, what);
  if (!parts) return fail(parts.error());
  return resolve(*parts, what);
}

Result<Addresses> resolve(const HostPort& host, const char* what, const Deadline& limit) {
  auto found = resolve(host, what);
  while (!found && found.error().code == EAI_AGAIN && !limit.passed()) {
    std::this_thread::sleep_for(kResolverPause);
    found = resolve(host, what);
  }
  return found;
}

Result<Fd> listen_on_all(uint16_t port) {
  SocketAddress all = *SocketAddress::parse("::");
  all.set_port(port);
  auto listener = listen_on(all);
  const int code = listener ? 0 : listener.error().code;
  if (code != EAFNOSUPPORT && code != EADDRNOTAVAIL) return listener;
  all = SocketAddress();
  all.set_port(port);
  return listen_on(all);
}

Result<Fd> listen_at(const HostPort& host, const char* what) {
  auto literal = SocketAddress::parse("[" + host.host + "]");
  if (!literal) literal = SocketAddress::parse(host.host);
  if (!literal && host.host != "localhost") return listen_on_all(host.port);
  auto at = resolve(host, what);
  if (!at) return fail(std::move(at.error()));
  Result<Fd> listener = fail(Error{});
  for (size_t i = 0; i < at->size() && !listener; ++i) listener = listen_on((*at)[i]);
  return listener;
}

}  // namespace slime
