#include "tools/info/topology/report.h"

#include <algorithm>
#include <tuple>

#include "engine/fabric.h"

namespace slime::info {
namespace {

bool is_of(const RailCaps& caps, const RailCaps& first) {
  const auto key = [](const RailCaps& rail) {
    return std::tie(rail.transport, rail.pci_path, rail.port, rail.oob_address, rail.guid);
  };
  return key(caps) == key(first);
}

// "eth0.0", of several sockets, is of "eth0".
PortPlace describe_port(const Topology& topology, const std::vector<RailCaps>& rails,
                        const RailCaps& first) {
  PortPlace port{first.name, first.transport, 0, 0, topology.locate(first.pci_path)};
  for (const RailCaps& caps : rails) {
    if (!is_of(caps, first)) continue;
    ++port.rails;
    port.speed_mbps += caps.speed_mbps;
  }
  if (port.rails > 1) port.name = port.name.substr(0, port.name.find_last_of('.'));
  return port;
}

std::vector<PortPlace> describe_ports(const Topology& topology,
                                      const std::vector<RailCaps>& rails) {
  std::vector<PortPlace> ports;
  for (size_t i = 0; i < rails.size(); ++i) {
    const auto of_port = [&](const RailCaps& earlier) { return is_of(earlier, rails[i]); };
    const auto begin = rails.begin();
    if (std::none_of(begin, begin + static_cast<ptrdiff_t>(i), of_port)) {
      ports.push_back(describe_port(topology, rails, rails[i]));
    }
  }
  return ports;
}

std::vector<PciPlace*> places_without_node(TopologyReport* report) {
  std::vector<PciPlace*> places;
  for (PciPlace& gpu : report->gpus) {
    if (gpu.numa_node < 0) places.push_back(&gpu);
  }
  for (PortPlace& port : report->ports) {
    if (!port.is_virtual() && port.place.numa_node < 0) places.push_back(&port.place);
  }
  return places;
}

std::string joined_addresses(const std::vector<PciPlace*>& places) {
  std::string text;
  for (const PciPlace* place : places) text += (text.empty() ? "" : ", ") + place->address();
  return text;
}

void ask_other_source(const Topology& topology, const OpenLocalitySource& open_other,
                      TopologyReport* report) {
  report->source = "/sys";
  std::vector<PciPlace*> unknown = places_without_node(report);
  if (unknown.empty()) return;
  const auto other = open_other();
  if (!other) {
    report->source += "; it does not say it of " + joined_addresses(unknown) +
                      ", and hwloc cannot be asked: " + other.error().what;
    return;
  }
  const auto rest = std::stable_partition(unknown.begin(), unknown.end(), [&](PciPlace* place) {
    return topology.ask(**other, place);
  });
  const std::vector<PciPlace*> told(unknown.begin(), rest), untold(rest, unknown.end());
  if (!told.empty()) report->source += "; " + (*other)->name() + " for " + joined_addresses(told);
  if (!untold.empty()) {
    report->source +=
        "; of " + joined_addresses(untold) + " " + (*other)->name() + " does not know it either";
  }
}

std::string key_of(const PciPlace& place, Sharing sharing) {
  switch (sharing) {
    case Sharing::kSwitch:
      return place.switches.empty() ? "" : place.switches.back();
    case Sharing::kRootComplex:
      return root_complex_of(place);
    case Sharing::kNumaNode:
      return place.numa_node < 0 ? "" : std::to_string(place.numa_node);
    case Sharing::kSocket:
      return place.socket < 0 ? "" : std::to_string(place.socket);
  }
  return "";
}

}  // namespace

TopologyReport describe_topology(const Topology& topology, const std::vector<RailCaps>& rails,
                                 const OpenLocalitySource& open_other) {
  TopologyReport report;
  report.nodes = topology.nodes();
  report.gpus = topology.gpus();
  report.ports = describe_ports(topology, rails);
  ask_other_source(topology, open_other, &report);
  return report;
}

TopologyReport report_topology(const Settings& settings) {
  std::vector<RailCaps> rails;
  const auto fabric = Fabric::open(settings, SteadyClock::instance());
  for (size_t i = 0; fabric && i < (*fabric)->device_count(); ++i) {
    for (const Rail* rail : (*fabric)->device(static_cast<int>(i))->rails()) {
      rails.push_back(rail->caps());
    }
  }
  TopologyReport report = describe_topology(Topology::read(), rails, open_hwloc);
  if (fabric) report.skipped = (*fabric)->notes();
  if (!fabric) report.error = fabric.error().what;
  return report;
}

std::vector<RailGroup> group_rails(const TopologyReport& report, Sharing sharing) {
  std::vector<RailGroup> groups;
  for (const PortPlace& port : report.ports) {
    const std::string key = key_of(port.place, sharing);
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
