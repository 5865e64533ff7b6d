// Judges interfaces by what the kernel says of their kind, and by names where it says nothing.
#include "base/interfaces/interface_candidate.h"

#include <net/if.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace slime {
namespace {

// Bridges, and ports of bridges, of container and virtual machine managers. Their addresses are
// often the same on every host, so that a rank would connect to its own host.
constexpr const char* kNeverPrefixes[] = {
    "docker", "podman", "veth", "virbr", "cni",       "flannel",    "cali",  "cilium",
    "lxc",    "lxd",    "tunl", "kube",  "antrea-gw", "ovn-k8s-mp", "vmnet", "vboxnet"};

// Docker's networks are bridges named "br-" and the first 12 hexadecimal digits of an id.
bool has_managers_name(const std::string& name) {
  if (name.starts_with("br-")) {
    return name.size() == 15 && name.find_first_not_of("0123456789abcdef", 3) == std::string::npos;
  }
  return std::ranges::any_of(kNeverPrefixes,
                             [&](const char* prefix) { return name.starts_with(prefix); });
}

bool is_one_of(const std::string& kind, std::initializer_list<const char*> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

// A NIC has no kind. Bonds, teams and VLANs are made of NICs, so a bridge over one leads outside.
bool leads_outside(const Candidate& candidate) {
  const std::string& kind = candidate.link.kind;
  return candidate.up() && !candidate.loopback() &&
         (kind.empty() || is_one_of(kind, {"bond", "team", "vlan", "macvlan", "macsec"}));
}

bool has_nic(const Candidate& bridge, const std::vector<Candidate>& all) {
  return bridge.link.index != 0 && std::ranges::any_of(all, [&](const Candidate& other) {
           return other.link.master == bridge.link.index && leads_outside(other);
         });
}

// What the kinds are called: rtnl_link_ops.kind in the kernel's drivers.
std::string describe_virtual(const std::string& kind) {
  if (is_one_of(kind,
                {"wireguard", "tun",    "ipip",   "sit",       "gre",     "gretap", "ip6gre",
                 "ip6gretap", "ip6tnl", "erspan", "ip6erspan", "vxlan",   "geneve", "vti",
                 "vti6",      "xfrm",   "ppp",    "gtp",       "bareudp", "amt",    "ovpn"})) {
    return "is a tunnel (" + kind + ")";
  }
  if (is_one_of(kind, {"dummy", "ifb", "nlmon"})) return "is a virtual device (" + kind + ")";
  // The host's own network may be such a port too.
  if (kind == "openvswitch") return "is a port of Open vSwitch";
  return kind == "bridge" ? "is a bridge of which no NIC with a carrier is a part" : "";
}

}  // namespace

bool Candidate::loopback() const { return (flags & IFF_LOOPBACK) != 0; }
bool Candidate::up() const { return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0; }

std::vector<Candidate> group(const std::vector<InterfaceRecord>& records) {
  std::vector<Candidate> candidates;
  for (const InterfaceRecord& record : records) {
    const std::string name = record.interface();
    auto known = std::ranges::find(candidates, name, &Candidate::name);
    if (known == candidates.end()) {
      candidates.push_back({name, record.flags, record.link, {}});
      known = std::prev(candidates.end());
    }
    if (record.address) known->addresses.push_back(*record.address);
  }
  return candidates;
}

// A peer on another host cannot use a link-local IPv6 address, because its scope belongs to this
// host. IPv4's link-local range is routed like any other, and is used if there is nothing better.
std::optional<SocketAddress> usable_address(const Candidate& candidate, const AddressWish& wanted) {
  std::optional<SocketAddress> best;
  std::ptrdiff_t best_rank = PTRDIFF_MAX;
  for (const SocketAddress& address : candidate.addresses) {
    if (address.is_any() || address.is_loopback() != candidate.loopback()) continue;
    if (address.is_ipv6() && address.is_link_local()) continue;
    if (wanted.family != AF_UNSPEC && address.family() != wanted.family) continue;
    const auto& ranges = wanted.ranges;
    const auto range =
        std::ranges::find_if(ranges, [&](const AddressRange& one) { return one.has(address); });
    if (range == ranges.end() && !ranges.empty()) continue;
    const int form = address.is_ipv6() ? 1 : address.is_link_local() ? 2 : 0;
    const std::ptrdiff_t rank = (range - ranges.begin()) * 3 + form;
    if (rank >= best_rank) continue;
    best = address;
    best_rank = rank;
  }
  if (best) best->set_port(0);
  return best;
}

Judgement judge(const Candidate& candidate, const std::vector<Candidate>& all) {
  if (candidate.loopback()) return {InterfaceClass::kLoopback, "is loopback"};
  const bool bridges_nic = candidate.link.kind == "bridge" && has_nic(candidate, all);
  if (!bridges_nic && has_managers_name(candidate.name)) {
    return {InterfaceClass::kNever, "is a virtual bridge or tunnel"};
  }
  const auto address = usable_address(candidate);
  if (address && address->is_link_local()) {
    return {InterfaceClass::kLinkLocal, "has a link-local address only (" + address->host() + ")"};
  }
  std::string why = bridges_nic ? "" : describe_virtual(candidate.link.kind);
  return {why.empty() ? InterfaceClass::kNic : InterfaceClass::kVirtual, std::move(why)};
}

}  // namespace slime
