// Chooses interfaces by the user's pattern, or by a rule that is right on most machines.
#include "base/interfaces/interfaces.h"

#include <net/if.h>

#include <algorithm>
#include <tuple>

#include "base/interfaces/interface_candidate.h"
#include "base/interfaces/interface_pattern.h"
#include "base/machine/sysfs.h"

namespace slime {
namespace {

// The reason why the interface is not used; empty: it is used.
std::string reason_to_skip(const Candidate& candidate, const InterfacePattern& pattern,
                           const std::string& source, const AddressWish& wanted) {
  const bool named = pattern.matches(candidate.name);
  if (pattern.includes() && !named) return "does not match " + source;
  if (pattern.exclude && named) return "is excluded by " + source;
  if ((candidate.flags & IFF_UP) == 0) return "is down (ip link set " + candidate.name + " up)";
  if (!candidate.up()) return "has no carrier";
  if (!usable_address(candidate)) return "has no IPv4 and no global IPv6 address";
  if (!usable_address(candidate, {{}, wanted.family})) {
    return std::string("has no usable address of ") +
           (wanted.family == AF_INET ? "AF_INET" : "AF_INET6") + " (NCCL_SLIME_SOCKET_FAMILY)";
  }
  if (!usable_address(candidate, wanted)) return "has no address in NCCL_SLIME_SOCKET_SUBNET";
  return "";
}

std::string subnet_of(const std::string& interface, const SocketAddress& address,
                      const std::vector<InterfaceRecord>& records) {
  const auto has_it = [&](const InterfaceRecord& record) {
    return record.prefix_bits >= 0 && record.interface() == interface && record.address &&
           record.address->host() == address.host();
  };
  const auto found = std::ranges::find_if(records, has_it);
  return found == records.end() ? ""
                                : AddressRange::around(address, found->prefix_bits).to_string();
}

Interface describe_interface(const Candidate& candidate, const AddressWish& wanted,
                             const std::vector<InterfaceRecord>& records,
                             const std::string& sysfs_root) {
  Interface result;
  result.name = candidate.name;
  result.index = candidate.link.index;
  result.mac = candidate.link.mac;
  result.mtu = candidate.link.mtu;
  result.address = *usable_address(candidate, wanted);
  result.subnet = subnet_of(candidate.name, result.address, records);
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

// Without a pattern only the best class is used. Adds to the notes what is left out.
std::vector<Candidate> best_of(const std::vector<Candidate>& usable,
                               const std::vector<Candidate>& all, std::vector<std::string>* notes) {
  constexpr const char* kHint = "name it in NCCL_SLIME_IFNAME to use it";
  std::vector<Judgement> judgements;
  InterfaceClass best = InterfaceClass::kLoopback;
  for (const Candidate& candidate : usable) {
    judgements.push_back(judge(candidate, all));
    best = std::min(best, judgements.back().its_class);
  }
  std::vector<Candidate> chosen;
  for (size_t i = 0; i < usable.size(); ++i) {
    const auto& [its_class, why] = judgements[i];
    const std::string note = usable[i].name + " " + why;
    if (its_class == best) {
      chosen.push_back(usable[i]);
    } else if (its_class == InterfaceClass::kNever) {
      notes->push_back(note + " (" + kHint + ")");
    } else {
      const bool loopback = its_class == InterfaceClass::kLoopback;
      notes->push_back(note + ", and other interfaces are up" +
                       (loopback ? "" : std::string(" (") + kHint + ")"));
    }
  }
  return chosen;
}

}  // namespace

InterfaceList select_interfaces(std::string_view pattern_text,
                                const std::vector<InterfaceRecord>& records,
                                const std::string& sysfs_root, const std::string& variable,
                                const AddressWish& wanted) {
  const auto pattern = InterfacePattern::parse(pattern_text);
  const std::string source = variable + "=\"" + std::string(pattern_text) + "\"";
  InterfaceList list;
  const std::vector<Candidate> all = group(records);
  std::vector<Candidate> usable;
  for (const Candidate& candidate : all) {
    const std::string reason = reason_to_skip(candidate, pattern, source, wanted);
    if (reason.empty()) usable.push_back(candidate);
    if (!reason.empty()) list.notes.push_back(candidate.name + " " + reason);
  }
  if (!pattern.is_given() && wanted.ranges.empty()) usable = best_of(usable, all, &list.notes);
  for (const Candidate& candidate : usable) {
    list.interfaces.push_back(describe_interface(candidate, wanted, records, sysfs_root));
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
  interface.name = found->interface();
  interface.index = found->link.index;
  interface.mac = found->link.mac;
  read_sysfs_facts(sysfs_root, &interface);
  return read_local_cpus(interface.pci_path);
}

std::string interface_with(const SocketAddress& address) {
  const auto records = interface_records();
  if (!records) return "";
  for (const InterfaceRecord& record : *records) {
    if (record.address && record.address->host() == address.host()) return record.interface();
  }
  return "";
}

Result<InterfaceList> list_interfaces(std::string_view pattern, const std::string& variable,
                                      std::string_view subnets, std::string_view family) {
  std::optional<std::vector<AddressRange>> ranges;
  if (!subnets.empty() && !(ranges = parse_ranges(subnets))) {
    return fail(make_error(Status::kConfig, 0,
                           "'%.*s' is no list of ranges of addresses; write one like "
                           "10.1.0.0/16,fd00::/8",
                           static_cast<int>(subnets.size()), subnets.data()));
  }
  auto records = interface_records();
  if (!records) return fail(std::move(records.error()));
  const auto version = static_cast<sa_family_t>(family == "AF_INET"    ? AF_INET
                                                : family == "AF_INET6" ? AF_INET6
                                                                       : AF_UNSPEC);
  auto list = select_interfaces(pattern, *records, "/sys", variable,
                                {ranges.value_or(std::vector<AddressRange>()), version});
  const bool known =
      std::ranges::any_of(*records, [](const InterfaceRecord& one) { return one.link.mtu != 0; });
  if (!known && !records->empty()) {
    list.notes.push_back(
        "the kernel does not say of what kind interfaces are (rtnetlink), so that "
        "only names tell a bridge or a tunnel from a NIC");
  }
  return list;
}

}  // namespace slime
