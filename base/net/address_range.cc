#include "base/net/address_range.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/text.h"

namespace slime {

std::optional<AddressRange> AddressRange::parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string address(text.substr(0, slash));
  const int bits = parse_whole<int>(text.substr(slash + 1)).value_or(-1);
  AddressRange range;
  const bool ipv6 = ::inet_pton(AF_INET6, address.c_str(), range.prefix.data()) == 1;
  if (!ipv6) {
    range.prefix = kMappedIpv4;
    if (::inet_pton(AF_INET, address.c_str(), &range.prefix[12]) != 1) return std::nullopt;
  }
  if (bits < 0 || bits > (ipv6 ? 128 : 32)) return std::nullopt;
  range.bits = ipv6 ? bits : bits + 96;
  return range;
}

bool AddressRange::has(const Bytes& address) const {
  for (int i = 0; i < bits; ++i) {
    const auto byte = static_cast<size_t>(i / 8);
    const int mask = 0x80 >> i % 8;
    if ((address[byte] & mask) != (prefix[byte] & mask)) return false;
  }
  return true;
}

bool AddressRange::has(const SocketAddress& address) const {
  Bytes bytes = kMappedIpv4;
  if (address.is_ipv6()) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr,
                16);
  } else {
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr, 4);
  }
  return has(bytes);
}

std::optional<std::vector<AddressRange>> parse_ranges(std::string_view text) {
  std::vector<AddressRange> ranges;
  for (;;) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto range = AddressRange::parse(trimmed(text.substr(0, comma)));
    if (!range) return std::nullopt;
    ranges.push_back(*range);
    if (comma == text.size()) return ranges;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace slime
