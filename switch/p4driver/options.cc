#include "switch/p4driver/options.h"

#include <arpa/inet.h>

#include <bit>
#include <set>

#include "switch/protocol/control.h"

namespace slime::net {
namespace {

class Checker {
 public:
  Checker(const P4Options& options, const P4Traits& traits) : options_(options), traits_(traits) {}
  Result<void> all() const;

 private:
  tl::unexpected<Error> bad(const char* what, const std::string& value,
                            const std::string& accepted) const {
    return fail(make_error(Status::kConfig, 0, "%s with %s %s: %s", traits_.device, what,
                           value.c_str(), accepted.c_str()));
  }
  Result<void> hosts() const;

  const P4Options& options_;
  const P4Traits& traits_;
};

// "1, 2, 4, 8 or 16"
std::string powers_up_to(uint32_t most) {
  std::string text = "1";
  for (uint32_t power = 2; power <= most; power *= 2) {
    text += (power * 2 > most ? " or " : ", ") + std::to_string(power);
  }
  return text;
}

Result<void> Checker::hosts() const {
  if (options_.hosts.size() >= traits_.hosts) {
    return bad("hosts, in number", std::to_string(options_.hosts.size()),
               "at most " + std::to_string(traits_.hosts - 1));
  }
  const std::map<uint64_t, uint16_t> ports = ports_by_mac(options_.hosts);
  for (const auto& [address, host] : options_.hosts) {
    if (ports.at(host.mac) != host.port) {
      return bad("a MAC", "at two ports", "a host with several addresses has one");
    }
    if (host.port >= traits_.ports) {
      return bad("port", std::to_string(host.port),
                 "0 to " + std::to_string(traits_.ports - 1) + " are possible");
    }
    if (host.mac == options_.mac) {
      return bad("the MAC of a host", "that is also the switch's",
                 "give the switch one of its own");
    }
    if (address == ipv4_of(options_.address)) {
      return bad("a host at", options_.address.host(), "that is the switch's address");
    }
  }
  return {};
}

Result<void> Checker::all() const {
  const SocketAddress& address = options_.address;
  if (address.is_ipv6() || address.is_any() || address.port() == 0) {
    return bad("address", address.to_string(),
               "one IPv4 address with a port is needed; the program has no IPv6");
  }
  if (!std::has_single_bit(options_.shards) || options_.shards > traits_.shards) {
    return bad("shards", std::to_string(options_.shards),
               "the program takes " + powers_up_to(traits_.shards) + "; set data.shards");
  }
  if (address.port() + options_.shards > 65536) {
    return bad("address", address.to_string(), "each shard has a port from there on, up to 65535");
  }
  if (options_.max_lanes < 1) return bad("max_lanes", "0", "at least 1");
  if (!sap::suffice(options_.formats)) {
    return bad("formats", control::format_list(options_.formats),
               "i32 and u32 are needed at least");
  }
  return hosts();
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
  return Checker(options, traits).all();
}

}  // namespace slime::net
