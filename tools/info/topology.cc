#include "tools/info/topology.h"

#include <algorithm>
#include <tuple>

namespace slime::info {
namespace {

// Sockets of one interface, or queue pairs of one port, are rails of one port.
bool is_same_port(const RailCaps& left, const RailCaps& right) {
  const auto key = [](const RailCaps& rail) {
    return std::tie(rail.transport, rail.pci_path, rail.port, rail.oob_address, rail.guid);
  };
  return key(left) == key(right);
}

std::vector<PortPlace> describe_ports(const Topology& topology,
                                      const std::vector<RailCaps>& rails) {
  std::vector<PortPlace> ports;
  std::vector<const RailCaps*> firsts;  // the first rail of each port
  for (const RailCaps& rail : rails) {
    const auto first = std::ranges::find_if(
        firsts, [&rail](const RailCaps* other) { return is_same_port(*other, rail); });
    const auto index = static_cast<size_t>(first - firsts.begin());
    if (index == ports.size()) {
      firsts.push_back(&rail);
      ports.push_back({rail.name, rail.transport, 0, 0, topology.locate(rail.pci_path)});
    }
    ++ports[index].rails;
    ports[index].speed_mbps += rail.speed_mbps;
  }
  for (PortPlace& port : ports) {  // "eth0.0", of several sockets, is of "eth0"
    if (port.rails > 1) port.name.erase(std::min(port.name.rfind('.'), port.name.size()));
  }
  return ports;
}

using Places = std::vector<PciPlace*>;

std::string joined_addresses(const Places& places) {
  std::string text;
  for (const PciPlace* place : places) text += (text.empty() ? "" : ", ") + place->address();
  return text;
}

// Takes the NUMA nodes that /sys does not have from the other source. Returns the sources as text.
std::string find_missing_nodes(const Topology& topology, const OpenLocalitySource& open_other,
                               TopologyReport* report) {
  const auto has_node = [](const PciPlace* place) { return place->numa_node >= 0; };
  Places missing, found;
  for (PciPlace& gpu : report->gpus) missing.push_back(&gpu);
  for (PortPlace& port : report->ports) {
    if (!port.is_virtual()) missing.push_back(&port.place);
  }
  std::erase_if(missing, has_node);
  if (missing.empty()) return "/sys";
  const auto other = open_other();
  if (!other) {
    return "/sys; it does not say it of " + joined_addresses(missing) +
           ", and hwloc cannot be asked: " + other.error().what;
  }
  for (PciPlace* place : missing) {
    if (topology.ask(**other, place)) found.push_back(place);
  }
  std::erase_if(missing, has_node);
  std::string source = "/sys";
  if (!found.empty()) source += "; " + (*other)->name() + " for " + joined_addresses(found);
  if (!missing.empty()) {
    source +=
        "; of " + joined_addresses(missing) + " " + (*other)->name() + " does not know it either";
  }
  return source;
}

// What places with the same key share; empty: nothing.
std::string sharing_key(const PciPlace& place, Sharing sharing) {
  const auto number = [](int value) { return value < 0 ? "" : std::to_string(value); };
  switch (sharing) {
    case Sharing::kSwitch:
      return place.switches.empty() ? "" : place.switches.back();
    case Sharing::kRootComplex:
      return root_complex_of(place);
    case Sharing::kNumaNode:
      return number(place.numa_node);
    case Sharing::kSocket:
      return number(place.socket);
  }
  return "";
}

}  // namespace

TopologyReport describe_topology(const Topology& topology, const std::vector<RailCaps>& rails,
                                 const OpenLocalitySource& open_other) {
  TopologyReport report{topology.nodes(), topology.gpus(), describe_ports(topology, rails), ""};
  report.source = find_missing_nodes(topology, open_other, &report);
  return report;
}

std::vector<RailGroup> group_rails(const TopologyReport& report, Sharing sharing) {
  std::vector<RailGroup> groups;
  for (const PortPlace& port : report.ports) {
    const std::string key = sharing_key(port.place, sharing);
    if (key.empty()) continue;
    auto group = std::ranges::find(groups, key, &RailGroup::shared);
    if (group == groups.end()) group = groups.insert(group, RailGroup{key, {}});
    group->rails.push_back(port.name);
  }
  return groups;
}

std::string root_complex_of(const PciPlace& place) {
  const size_t name = place.host_bridge.rfind("/pci");
  return name == std::string::npos ? "" : place.host_bridge.substr(name + 4);
}

}  // namespace slime::info
