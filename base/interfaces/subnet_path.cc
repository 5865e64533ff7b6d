#include "base/interfaces/subnet_path.h"

#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/interfaces/route.h"
#include "base/machine/sysfs.h"

namespace slime {
namespace {

// The address beside this one: its last byte has these bits changed.
std::optional<SocketAddress> beside(const SocketAddress& address, uint8_t changed) {
  sockaddr_storage bytes{};
  std::memcpy(&bytes, address.data(), address.size());
  if (address.is_ipv6()) {
    reinterpret_cast<sockaddr_in6*>(&bytes)->sin6_addr.s6_addr[15] ^= changed;
  } else {
    reinterpret_cast<sockaddr_in*>(&bytes)->sin_addr.s_addr ^= htonl(changed);
  }
  const auto result =
      SocketAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&bytes), address.size());
  return result ? std::optional(*result) : std::nullopt;
}

// The route to an address of the subnet that this host does not have itself.
std::optional<Route> route_to_subnet(const SocketAddress& own, const AddressRange& subnet) {
  for (uint8_t changed = 1; changed < 16; ++changed) {
    const auto neighbour = beside(own, changed);
    if (!neighbour || !subnet.has(*neighbour)) continue;
    const auto route = find_route(own, *neighbour);
    if (route && route->unicast) return route;
  }
  return std::nullopt;
}

// The kernel takes the larger one of those for all interfaces and for this one.
long sysctl_of(const std::string& root, const std::string& interface, const std::string& name) {
  return std::max(read_number(root + "/all/" + name).value_or(0),
                  read_number(root + "/" + interface + "/" + name).value_or(0));
}

// What stands in the way of an interface whose subnet is routed over another one.
std::string describe_obstacles(const std::string& root, const std::string& interface) {
  std::string text;
  if (sysctl_of(root, interface, "rp_filter") == 1) {
    text += "; rp_filter=1 drops what comes in by it: sysctl -w net/ipv4/conf/" + interface +
            "/rp_filter=2";
  }
  if (sysctl_of(root, interface, "arp_ignore") == 0) {
    text +=
        "; arp_ignore=0 lets any interface answer for its address, so that packets may come in "
        "by another one: sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2";
  }
  return text;
}

}  // namespace

std::string describe_path(const Interface& interface, const std::string& sysctl_root) {
  const auto subnet = AddressRange::parse(interface.subnet);
  const bool scoped = interface.address.is_ipv6() && interface.address.is_link_local();
  if (!subnet || interface.index == 0 || interface.loopback || scoped) return "";
  const auto route = route_to_subnet(interface.address, *subnet);
  if (!route) return "";  // a subnet of one address, or of hosts that all are this one
  if (route->interface == interface.index) return "packets to " + interface.subnet + " leave by it";
  char other[IF_NAMESIZE] = "?";
  (void)if_indextoname(route->interface, other);
  std::string text = "packets to " + interface.subnet + " are routed over " + other +
                     (can_bind_to(interface.name) ? ", so connections are bound to this interface"
                                                  : ", and this process may not bind connections");
  if (!interface.address.is_ipv6()) text += describe_obstacles(sysctl_root, interface.name);
  return text;
}

}  // namespace slime
