// Chooses interfaces by the user's pattern, or by a rule that is right on most machines.
#include "base/net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>

#include "base/machine/sysfs.h"

namespace slime {
namespace {

// Bridges and tunnels of container and virtual machine managers. Their addresses are often the same
// on every host, so that a rank would connect to its own host.
constexpr const char* kVirtualPrefixes[] = {"docker", "podman",  "veth", "virbr",  "br-",
                                            "cni",    "flannel", "cali", "cilium", "lxc",
                                            "lxd",    "tunl",    "kube"};

struct Pattern {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string> names;

  bool matches(const std::string& name) const {
    return std::ranges::any_of(names, [&](const std::string& wanted) {
      return exact ? name == wanted : name.starts_with(wanted);
    });
  }
  // A pattern without names counts as none, even if it has signs (misc/socket.cc,
  // ncclFindInterfaces).
  bool is_given() const { return !names.empty(); }
  bool includes() const { return !exclude && is_given(); }
};

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The order of the signs is NCCL's: "^=eth0" (misc/socket.cc, findInterfaces).
Pattern parse_pattern(std::string_view text) {
  Pattern pattern;
  text = trim(text);
  if (text.starts_with('^')) {
    pattern.exclude = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    pattern.exact = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = trim(text.substr(0, comma));
    if (!name.empty()) pattern.names.emplace_back(name);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return pattern;
}

struct Candidate {
  std::string name;
  unsigned flags = 0;
  std::vector<SocketAddress> addresses;

  bool loopback() const { return (flags & IFF_LOOPBACK) != 0; }
  bool up() const { return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0; }
};

// Collects the addresses of each interface, in the order of the records.
std::vector<Candidate> group(const std::vector<InterfaceRecord>& records) {
  std::vector<Candidate> candidates;
  for (const InterfaceRecord& record : records) {
    // "eth0:1" is a label of an address of eth0 (ip-address(8)), no interface of its own.
    const std::string name = record.name.substr(0, record.name.find(':'));
    auto known = std::ranges::find(candidates, name, &Candidate::name);
    if (known == candidates.end()) {
      candidates.push_back({name, record.flags, {}});
      known = candidates.end() - 1;
    }
    if (record.address) known->addresses.push_back(*record.address);
  }
  return candidates;
}

// A peer on another host cannot use a link-local IPv6 address, because its scope belongs to this
// host. IPv4's link-local range is routed like any other, and is used if there is nothing better.
std::optional<SocketAddress> usable_address(const Candidate& candidate) {
  std::optional<SocketAddress> best;
  int best_rank = 3;
  for (const SocketAddress& address : candidate.addresses) {
    if (address.is_any() || address.is_loopback() != candidate.loopback()) continue;
    if (address.is_ipv6() && address.is_link_local()) continue;
    const int rank = address.is_ipv6() ? 1 : address.is_link_local() ? 2 : 0;
    if (rank >= best_rank) continue;
    best = address;
    best_rank = rank;
  }
  if (best) best->set_port(0);
  return best;
}

// The reason why the interface is not used; empty: it is used.
std::string reason_to_skip(const Candidate& candidate, const Pattern& pattern,
                           const std::string& source) {
  const bool named = pattern.matches(candidate.name);
  if (pattern.includes() && !named) return "does not match " + source;
  if (pattern.exclude && named) return "is excluded by " + source;
  if ((candidate.flags & IFF_UP) == 0) return "is down (ip link set " + candidate.name + " up)";
  if (!candidate.up()) return "has no carrier";
  if (!usable_address(candidate)) return "has no IPv4 and no global IPv6 address";
  if (pattern.is_given()) return "";
  const bool is_virtual = std::ranges::any_of(
      kVirtualPrefixes, [&](const char* prefix) { return candidate.name.starts_with(prefix); });
  if (is_virtual) return "is a virtual bridge or tunnel (name it in NCCL_SLIME_IFNAME to use it)";
  return "";
}

Interface describe_interface(const Candidate& candidate, const std::string& sysfs_root) {
  Interface result;
  result.name = candidate.name;
  result.address = *usable_address(candidate);
  read_sysfs_facts(sysfs_root, &result);
  result.loopback = candidate.loopback();
  return result;
}

// By PCI address, then by name. Interfaces without a PCI address follow.
void sort_interfaces(std::vector<Interface>* interfaces) {
  const auto key = [](const Interface& interface) {
    const auto address = parse_pci_address(interface.pci_path);
    return std::tuple(!address, address, interface.name);
  };
  std::ranges::sort(*interfaces, {}, key);
}

}  // namespace

Result<std::vector<InterfaceRecord>> interface_records() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(system_error(errno, "getifaddrs"));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<InterfaceRecord> records;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    InterfaceRecord record{entry->ifa_name, entry->ifa_flags, std::nullopt};
    const int family = entry->ifa_addr != nullptr ? entry->ifa_addr->sa_family : AF_UNSPEC;
    if (family == AF_INET || family == AF_INET6) {
      const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (auto address = SocketAddress::from_sockaddr(entry->ifa_addr, bytes)) {
        record.address = *address;
      }
    }
    records.push_back(std::move(record));
  }
  return records;
}

InterfaceList select_interfaces(std::string_view pattern_text,
                                const std::vector<InterfaceRecord>& records,
                                const std::string& sysfs_root, const std::string& variable) {
  const Pattern pattern = parse_pattern(pattern_text);
  const std::string source = variable + "=\"" + std::string(pattern_text) + "\"";
  InterfaceList list;
  std::vector<Candidate> usable;
  for (const Candidate& candidate : group(records)) {
    const std::string reason = reason_to_skip(candidate, pattern, source);
    if (reason.empty()) usable.push_back(candidate);
    if (!reason.empty()) list.notes.push_back(candidate.name + " " + reason);
  }
  // Without a pattern, loopback is used only if no other interface is.
  const bool skip_loopback =
      !pattern.is_given() && !std::ranges::all_of(usable, &Candidate::loopback);
  for (const Candidate& candidate : usable) {
    if (skip_loopback && candidate.loopback()) {
      list.notes.push_back(candidate.name + " is loopback, and other interfaces are up");
    } else {
      list.interfaces.push_back(describe_interface(candidate, sysfs_root));
    }
  }
  sort_interfaces(&list.interfaces);
  return list;
}

CpuSet cpus_near(const SocketAddress& address, const std::vector<InterfaceRecord>& records,
                 const std::string& sysfs_root) {
  const auto has_it = [&](const InterfaceRecord& record) {
    return record.address && record.address->host() == address.host();
  };
  const auto found = std::ranges::find_if(records, has_it);
  if (found == records.end()) return {};
  Interface interface;
  interface.name = found->name.substr(0, found->name.find(':'));
  read_sysfs_facts(sysfs_root, &interface);
  return read_local_cpus(interface.pci_path);
}

Result<InterfaceList> list_interfaces(std::string_view pattern, const std::string& variable) {
  auto records = interface_records();
  if (!records) return fail(std::move(records.error()));
  return select_interfaces(pattern, *records, "/sys", variable);
}

}  // namespace slime
