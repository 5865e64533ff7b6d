#include "base/interfaces/address_range.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/text.h"

namespace slime {
namespace {

constexpr int kMappedBits = 96;  // before the address of IPv4

}  // namespace

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
  range.bits = ipv6 ? bits : bits + kMappedBits;
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

bool AddressRange::has(const SocketAddress& address) const { return has(bytes_of(address)); }

AddressRange::Bytes AddressRange::bytes_of(const SocketAddress& address) {
  Bytes bytes = kMappedIpv4;
  if (address.is_ipv6()) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr,
                16);
  } else {
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr, 4);
  }
  return bytes;
}

AddressRange AddressRange::around(const SocketAddress& address, int bits) {
  AddressRange range{bytes_of(address), address.is_ipv6() ? bits : bits + kMappedBits};
  for (int i = range.bits; i < 128; ++i) {
    range.prefix[static_cast<size_t>(i / 8)] &= static_cast<uint8_t>(~(0x80 >> i % 8));
  }
  return range;
}

std::string AddressRange::to_string() const {
  const bool ipv4 =
      bits >= kMappedBits && std::equal(prefix.begin(), prefix.begin() + 12, kMappedIpv4.begin());
  char text[INET6_ADDRSTRLEN] = "";
  (void)::inet_ntop(ipv4 ? AF_INET : AF_INET6, &prefix[ipv4 ? 12 : 0], text, sizeof text);
  return std::string(text) + "/" + std::to_string(ipv4 ? bits - kMappedBits : bits);
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
