#include "base/net/port_range.h"

#include <algorithm>
#include <cerrno>

#include "base/random.h"
#include "base/text.h"

namespace slime {
namespace {

// Calls try_port(address) until it does not say that the port is taken.
template <typename Try>
auto first_free(SocketAddress address, const PortRange& ports, Try try_port) {
  const uint32_t count = ports.last - ports.first + uint32_t{1};
  const uint32_t begin = random_number<uint32_t>().value_or(0) % count;
  address.set_port(0);
  if (!ports.is_given()) return try_port(address);
  for (uint32_t i = 0;; ++i) {
    address.set_port(static_cast<uint16_t>(ports.first + (begin + i) % count));
    auto result = try_port(address);
    if (result || result.error().code != EADDRINUSE) return result;
    if (i + 1 < count) continue;
    result.error().what = "no port of NCCL_SLIME_PORTS=" + std::to_string(ports.first) + "-" +
                          std::to_string(ports.last) + " is free at " + address.host() +
                          "; give a wider range, or see who holds them (ss -tulpn)";
    return result;
  }
}

}  // namespace

std::optional<PortRange> PortRange::parse(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto first = parse_whole<uint16_t>(text.substr(0, dash));
  const auto last = dash == text.size() ? first : parse_whole<uint16_t>(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last < *first) return std::nullopt;
  return PortRange{*first, *last};
}

Result<void> bind_within(const Fd& fd, SocketAddress address, const PortRange& ports) {
  return first_free(address, ports, [&](const SocketAddress& at) -> Result<void> {
    if (::bind(fd.get(), at.data(), at.size()) == 0) return {};
    return fail(system_error(errno, "bind to %s", at.to_string().c_str()));
  });
}

Result<Fd> listen_within(SocketAddress address, const PortRange& ports) {
  return first_free(address, ports, [](const SocketAddress& at) { return listen_on(at); });
}

}  // namespace slime
