// What the kernel says of the interfaces of this network namespace.
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>

#include "base/interfaces/interfaces.h"
#include "base/interfaces/netlink.h"

namespace slime {
namespace {

using netlink::for_each_attribute, netlink::number_of, netlink::text_of;
using Links = std::map<std::string, LinkFacts>;  // by name

std::string mac_of(std::string_view octets) {
  std::string mac;
  for (const char octet : octets) {
    char text[4];
    (void)std::snprintf(text, sizeof text, ":%02x", static_cast<uint8_t>(octet));
    mac += text + (mac.empty() ? 1 : 0);
  }
  return mac;
}

void read_link(unsigned index, const rtattr* attributes, int bytes, Links* links) {
  std::string name;
  LinkFacts link;
  link.index = index;
  for_each_attribute(attributes, bytes, [&](int type, std::string_view data) {
    if (type == IFLA_IFNAME) name = text_of(data);
    if (type == IFLA_ADDRESS) link.mac = mac_of(data);
    if (type == IFLA_MTU) link.mtu = number_of(data);
    if (type == IFLA_MASTER) link.master = number_of(data);
    if (type != IFLA_LINKINFO) return;
    for_each_attribute(reinterpret_cast<const rtattr*>(data.data()), static_cast<int>(data.size()),
                       [&](int inner, std::string_view text) {
                         if (inner == IFLA_INFO_KIND) link.kind = text_of(text);
                       });
  });
  (*links)[name] = link;
}

// Empty, or not all: the kernel does not answer, so that kinds are not known.
Links read_links() {
  Links links;
  (void)netlink::ask_links(0, [&](unsigned index, const rtattr* attributes, int bytes) {
    read_link(index, attributes, bytes, &links);
  });
  return links;
}

// Of a netmask: its leading ones.
int prefix_bits(const sockaddr* mask, int family) {
  if (mask == nullptr) return -1;
  const bool ipv6 = family == AF_INET6;
  const void* const bytes =
      ipv6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr)
           : &reinterpret_cast<const sockaddr_in*>(mask)->sin_addr;
  const auto* const first = static_cast<const uint8_t*>(bytes);
  int bits = 0;
  while (bits < (ipv6 ? 128 : 32) && (first[bits / 8] & 0x80 >> bits % 8) != 0) ++bits;
  return bits;
}

}  // namespace

Result<std::vector<InterfaceRecord>> interface_records() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(system_error(errno, "getifaddrs"));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  const Links links = read_links();
  std::vector<InterfaceRecord> records;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    InterfaceRecord record;
    record.name = entry->ifa_name;
    record.flags = entry->ifa_flags;
    const int family = entry->ifa_addr != nullptr ? entry->ifa_addr->sa_family : AF_UNSPEC;
    if (family == AF_INET || family == AF_INET6) {
      const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (auto address = SocketAddress::from_sockaddr(entry->ifa_addr, bytes)) {
        record.address = *address;
        record.prefix_bits = prefix_bits(entry->ifa_netmask, family);
      }
    }
    const auto link = links.find(record.interface());
    if (link != links.end()) record.link = link->second;
    if (record.link.index == 0) record.link.index = if_nametoindex(record.interface().c_str());
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace slime
