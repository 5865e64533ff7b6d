#include "base/net/resolve.h"

#include <netdb.h>

#include <cerrno>
#include <cstring>

namespace slime {

Result<SocketAddress> resolve(const std::string& text, uint16_t default_port, const char* what) {
  if (auto numeric = SocketAddress::parse(text)) {
    if (numeric->port() == 0) numeric->set_port(default_port);
    return numeric;
  }
  const size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  const std::string port =
      colon == std::string::npos ? std::to_string(default_port) : text.substr(colon + 1);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {
    const char* const why = code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code);
    return fail(make_error(Status::kConfig, code, "%s: \"%s\": %s; give it as host:port", what,
                           text.c_str(), why));
  }
  auto address = SocketAddress::from_sockaddr(found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

}  // namespace slime
