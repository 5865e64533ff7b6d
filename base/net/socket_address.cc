#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/net/socket.h"
#include "base/text.h"

namespace slime {
namespace {

constexpr size_t kMaxText = 96;  // longer than any address with its scope and port

// Wire form, big-endian: family (4 or 6), 0, port, 16 bytes of address (IPv4: 4, then zeros),
// scope, 4 zeros. Our own, because sockaddr differs between systems.
constexpr size_t kPortAt = 2, kAddressAt = 4, kScopeAt = 20, kPadAt = 24;

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

struct Parts {
  std::string host, scope;
  std::optional<uint16_t> port;  // none is written
  bool bracketed = false;
};

bool split_port(std::string_view text, Parts* parts) {
  parts->port = parse_whole<uint16_t>(text);
  return parts->port.has_value();
}

// "host", "host:port", "[host]:port"; more than one colon without brackets is a bare IPv6 address.
bool split(std::string_view text, Parts* parts) {
  std::string_view host = text;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    parts->bracketed = true;
    host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && (rest[0] != ':' || !split_port(rest.substr(1), parts))) return false;
  } else if (std::ranges::count(text, ':') == 1) {
    const size_t colon = text.find(':');
    host = text.substr(0, colon);
    if (!split_port(text.substr(colon + 1), parts)) return false;
  }
  const size_t percent = host.find('%');
  if (percent != std::string_view::npos) {
    parts->scope = host.substr(percent + 1);
    if (parts->scope.empty()) return false;
    host = host.substr(0, percent);
  }
  parts->host = host;
  return true;
}

bool is_well_formed(std::string_view text, Parts* parts) {
  return text.size() <= NI_MAXHOST && std::ranges::none_of(text, is_control) &&
         text.find(' ') == std::string_view::npos && split(text, parts) && !parts->host.empty();
}

std::string host_of(const Parts& parts) {
  return parts.scope.empty() ? parts.host : parts.host + "%" + parts.scope;
}

// A scope is an interface's index or its name.
bool parse_scope(const std::string& text, uint32_t* scope) {
  if (text.empty()) return true;
  const auto number = parse_whole<uint32_t>(text);
  if (number) {
    *scope = *number;
    return true;
  }
  *scope = if_nametoindex(text.c_str());
  return *scope != 0;
}

}  // namespace

SocketAddress::SocketAddress() {
  memset(&storage_, 0, sizeof storage_);
  storage_.any.sa_family = AF_INET;
}

// Copies only as many bytes as the family has, and only if there are so many.
Result<SocketAddress> SocketAddress::from_sockaddr(const sockaddr* address, socklen_t bytes) {
  SocketAddress result;
  const sa_family_t family =
      address != nullptr && bytes >= sizeof(sa_family_t) ? address->sa_family : AF_UNSPEC;
  const size_t needed = family == AF_INET    ? sizeof(sockaddr_in)
                        : family == AF_INET6 ? sizeof(sockaddr_in6)
                                             : 0;
  if (needed == 0 || bytes < needed) {
    return fail(
        make_error(Status::kInvalid, 0,
                   "socket address of family %d with %u bytes: only IPv4 and IPv6 are known",
                   family, static_cast<unsigned>(bytes)));
  }
  memcpy(&result.storage_, address, needed);
  // A peer of IPv4 at a socket that listens for both IP versions is one of IPv4.
  if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&result.storage_.v6.sin6_addr)) {
    const sockaddr_in6 mapped = result.storage_.v6;
    result = SocketAddress();
    memcpy(&result.storage_.v4.sin_addr, &mapped.sin6_addr.s6_addr[12], sizeof(in_addr));
    result.storage_.v4.sin_port = mapped.sin6_port;
    return result;
  }
  // Bytes that do not identify the address are zeroed, so that equal addresses compare equal.
  if (family == AF_INET) memset(result.storage_.v4.sin_zero, 0, sizeof(sockaddr_in::sin_zero));
  if (family == AF_INET6) result.storage_.v6.sin6_flowinfo = 0;
  return result;
}

// Tries IPv4 first. A scope or brackets allow IPv6 only.
Result<SocketAddress> SocketAddress::parse(std::string_view text) {
  SocketAddress result;
  Parts parts;
  const bool well_formed =
      text.size() <= kMaxText && text.find('\0') == std::string_view::npos && split(text, &parts);
  uint32_t scope = 0;
  if (well_formed && !parts.bracketed && parts.scope.empty() &&
      inet_pton(AF_INET, parts.host.c_str(), &result.storage_.v4.sin_addr) == 1) {
    result.set_port(parts.port.value_or(0));
    return result;
  }
  if (well_formed && parse_scope(parts.scope, &scope) &&
      inet_pton(AF_INET6, parts.host.c_str(), &result.storage_.v6.sin6_addr) == 1) {
    result.storage_.v6.sin6_family = AF_INET6;
    result.storage_.v6.sin6_flowinfo = 0;
    result.set_port(parts.port.value_or(0));
    result.set_scope(scope);
    return result;
  }
  const std::string shown(text.substr(0, kMaxText));
  return fail(make_error(Status::kInvalid, 0,
                         "\"%s\" is no numeric socket address; write 10.0.0.1:80 or [fd00::1]:80",
                         shown.c_str()));
}

SocketAddress::Wire SocketAddress::pack() const {
  Wire wire{};
  wire[0] = std::byte{is_ipv6() ? uint8_t{6} : uint8_t{4}};
  const uint16_t port_be = htons(port());
  const uint32_t scope_be = htonl(scope());
  memcpy(&wire[kPortAt], &port_be, sizeof port_be);
  memcpy(&wire[kScopeAt], &scope_be, sizeof scope_be);
  if (is_ipv6()) {
    memcpy(&wire[kAddressAt], &storage_.v6.sin6_addr, sizeof(in6_addr));
  } else {
    memcpy(&wire[kAddressAt], &storage_.v4.sin_addr, sizeof(in_addr));
  }
  return wire;
}

// The bytes come from a peer. Each address has exactly one wire form, so bytes that must be zero
// are checked too.
Result<SocketAddress> SocketAddress::unpack(std::span<const std::byte> wire) {
  const auto bad = [&](const char* why) {
    return fail(make_error(Status::kInvalid, 0, "socket address of %zu bytes from a peer: %s",
                           wire.size(), why));
  };
  if (wire.size() != kWireBytes) return bad("not the length of one");
  const auto family = static_cast<uint8_t>(wire[0]);
  if (family != 4 && family != 6) return bad("neither IPv4 nor IPv6");
  if (wire[1] != std::byte{0} || !all_zero(wire.subspan(kPadAt))) return bad("padding is not zero");
  uint16_t port_be = 0;
  uint32_t scope_be = 0;
  memcpy(&port_be, &wire[kPortAt], sizeof port_be);
  memcpy(&scope_be, &wire[kScopeAt], sizeof scope_be);
  SocketAddress result;
  if (family == 4) {
    if (!all_zero(wire.subspan(kAddressAt + sizeof(in_addr), kPadAt - kAddressAt - 4))) {
      return bad("bytes after an IPv4 address are not zero");
    }
    memcpy(&result.storage_.v4.sin_addr, &wire[kAddressAt], sizeof(in_addr));
  } else {
    result.storage_.v6.sin6_family = AF_INET6;
    memcpy(&result.storage_.v6.sin6_addr, &wire[kAddressAt], sizeof(in6_addr));
    result.set_scope(ntohl(scope_be));
  }
  result.set_port(ntohs(port_be));
  return result;
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (!is_ipv6()) {
    inet_ntop(AF_INET, &storage_.v4.sin_addr, text, sizeof text);
    return text;
  }
  inet_ntop(AF_INET6, &storage_.v6.sin6_addr, text, sizeof text);
  return scope() == 0 ? std::string(text) : text + ("%" + std::to_string(scope()));
}

std::string SocketAddress::to_string() const {
  const std::string host_text = is_ipv6() ? "[" + host() + "]" : host();
  return host_text + ":" + std::to_string(port());
}

uint16_t SocketAddress::port() const {
  return ntohs(is_ipv6() ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  (is_ipv6() ? storage_.v6.sin6_port : storage_.v4.sin_port) = htons(port);
}

void SocketAddress::set_scope(uint32_t scope) {
  if (is_ipv6()) storage_.v6.sin6_scope_id = scope;
}

bool SocketAddress::is_link_local() const {
  if (is_ipv6()) return IN6_IS_ADDR_LINKLOCAL(&storage_.v6.sin6_addr);
  return (ntohl(storage_.v4.sin_addr.s_addr) & 0xffff0000) == 0xa9fe0000;  // 169.254/16, RFC 3927
}

bool SocketAddress::is_loopback() const {
  if (is_ipv6()) return IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
  return ntohl(storage_.v4.sin_addr.s_addr) >> 24 == 127;
}

bool SocketAddress::is_any() const {
  if (is_ipv6()) return IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr);
  return storage_.v4.sin_addr.s_addr == 0;
}

// Equal addresses have the same wire form, and unused bytes of sockaddr do not matter.
bool operator==(const SocketAddress& left, const SocketAddress& right) {
  return left.pack() == right.pack();
}

Result<HostPort> split_host_port(std::string_view text, uint16_t default_port, const char* what) {
  const auto bad = [&](const char* why) {
    return fail(Status::kConfig, "%s: \"%s\" %s; give it as host:port, with a port from 1 to 65535",
                what, displayed(text, kMaxText).c_str(), why);
  };
  Parts parts;
  if (!is_well_formed(text, &parts)) return bad("is no address");
  const uint16_t port = parts.port.value_or(default_port);
  if (port == 0) return bad(parts.port ? "has port 0" : "has no port");
  return HostPort{host_of(parts), port};
}

std::string to_string(const HostPort& host) {
  const bool ipv6 = host.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host.host + "]" : host.host) + ":" + std::to_string(host.port);
}

Result<std::string> read_host(std::string_view text, const char* what) {
  Parts parts;
  const bool well_formed = is_well_formed(text, &parts);
  if (well_formed && !parts.port) return host_of(parts);
  return fail(Status::kConfig, "%s: \"%s\" %s; give a host alone, by name or address", what,
              displayed(text, kMaxText).c_str(), well_formed ? "has a port" : "is no host");
}

}  // namespace slime
