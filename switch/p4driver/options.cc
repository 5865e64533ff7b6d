#include "switch/p4driver/options.h"

#include <arpa/inet.h>

#include <bit>
#include <set>

#include "switch/protocol/control.h"

namespace slime::net {
namespace {

tl::unexpected<Error> bad(const P4Traits& traits, const char* what, const std::string& value,
                          const std::string& accepted) {
  return fail(Status::kConfig, "%s with %s %s: %s", traits.device, what, value.c_str(),
              accepted.c_str());
}

// "1, 2, 4, 8 or 16"
std::string powers_up_to(uint32_t most) {
  std::string text = "1";
  for (uint32_t power = 2; power <= most; power *= 2) {
    text += (power * 2 > most ? " or " : ", ") + std::to_string(power);
  }
  return text;
}

Result<void> check_hosts(const P4Options& options, const P4Traits& traits) {
  if (options.hosts.size() >= traits.hosts) {
    return bad(traits, "hosts, in number", std::to_string(options.hosts.size()),
               "at most " + std::to_string(traits.hosts - 1));
  }
  const std::map<uint64_t, uint16_t> ports = ports_by_mac(options.hosts);
  for (const auto& [address, host] : options.hosts) {
    if (ports.at(host.mac) != host.port) {
      return bad(traits, "a MAC", "at two ports", "a host with several addresses has one");
    }
    if (host.port >= traits.ports) {
      return bad(traits, "port", std::to_string(host.port),
                 "0 to " + std::to_string(traits.ports - 1) + " are possible");
    }
    if (host.mac == options.mac) {
      return bad(traits, "the MAC of a host", "that is also the switch's",
                 "give the switch one of its own");
    }
    if (address == ipv4_of(options.address)) {
      return bad(traits, "a host at", options.address.host(), "that is the switch's address");
    }
  }
  return {};
}

}  // namespace

std::map<uint64_t, uint16_t> ports_by_mac(const Hosts& hosts) {
  std::map<uint64_t, uint16_t> ports;
  for (const auto& [address, host] : hosts) ports.try_emplace(host.mac, host.port);
  return ports;
}

MulticastGroup group_of_all(uint16_t id, const Hosts& hosts) {
  std::set<uint16_t> ports;
  for (const auto& [address, host] : hosts) ports.insert(host.port);
  MulticastGroup group{.id = id};
  for (const uint16_t port : ports) group.replicas.push_back({0, port});
  return group;
}

uint32_t ipv4_of(const SocketAddress& address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr.s_addr);
}

Result<void> check(const P4Options& options, const P4Traits& traits) {
  const SocketAddress& address = options.address;
  if (address.is_ipv6() || address.is_any() || address.port() == 0) {
    return bad(traits, "address", address.to_string(),
               "one IPv4 address with a port is needed; the program has no IPv6");
  }
  if (!std::has_single_bit(options.shards) || options.shards > traits.shards) {
    return bad(traits, "shards", std::to_string(options.shards),
               "the program takes " + powers_up_to(traits.shards) + "; set data.shards");
  }
  if (address.port() + options.shards > 65536) {
    return bad(traits, "address", address.to_string(),
               "each shard has a port from there on, up to 65535");
  }
  if (options.max_lanes < 1) return bad(traits, "max_lanes", "0", "at least 1");
  if (!sap::suffice(options.formats)) {
    return bad(traits, "formats", control::format_list(options.formats),
               "i32 and u32 are needed at least");
  }
  return check_hosts(options, traits);
}

}  // namespace slime::net
