#include "tools/info/topology/report.h"

namespace slime::info {
namespace {

using nlohmann::json;

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }
json number_or_null(int number) { return number < 0 ? json(nullptr) : json(number); }

const char* word_for(NodeSource source) {
  switch (source) {
    case NodeSource::kNobody:
      return "nobody";
    case NodeSource::kSysfs:
      return "sysfs";
    case NodeSource::kOnlyNode:
      return "only_node";
    case NodeSource::kHwloc:
      return "hwloc";
  }
  return "";
}

json place_json(const PciPlace& place) {
  return {{"pci", text_or_null(place.address())},
          {"root_complex", text_or_null(root_complex_of(place))},
          {"switches", place.switches},
          {"numa_node", number_or_null(place.numa_node)},
          {"numa_node_source", word_for(place.source)},
          {"socket", number_or_null(place.socket)}};
}

json groups_json(const TopologyReport& report, Sharing sharing) {
  json groups = json::array();
  for (const RailGroup& group : group_rails(report, sharing)) {
    groups.push_back({{"shared", group.shared}, {"rails", group.rails}});
  }
  return groups;
}

// A row for each GPU, a column for each rail; null: virtual
json distances_json(const TopologyReport& report) {
  json rows = json::array();
  for (const PciPlace& gpu : report.gpus) {
    json row = json::array();
    for (const PortPlace& port : report.ports) {
      row.push_back(port.is_virtual() ? json(nullptr)
                                      : json(name_of(distance_between(gpu, port.place))));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

json topology_json(const TopologyReport& report) {
  json nodes = json::array(), gpus = json::array(), rails = json::array();
  for (const NumaNode& node : report.nodes) {
    nodes.push_back({{"number", node.number},
                     {"socket", number_or_null(node.socket)},
                     {"cpus", node.cpus.to_string()}});
  }
  for (const PciPlace& gpu : report.gpus) gpus.push_back(place_json(gpu));
  for (const PortPlace& port : report.ports) {
    json rail = place_json(port.place);
    rail["name"] = port.name;
    rail["transport"] = port.transport;
    rail["sockets"] = port.rails;
    rail["speed_mbps"] = port.speed_mbps;
    rails.push_back(std::move(rail));
  }
  return {{"numa_nodes", nodes},
          {"gpus", gpus},
          {"rails", rails},
          {"distances", distances_json(report)},
          {"groups",
           {{"switch", groups_json(report, Sharing::kSwitch)},
            {"root_complex", groups_json(report, Sharing::kRootComplex)},
            {"numa_node", groups_json(report, Sharing::kNumaNode)},
            {"socket", groups_json(report, Sharing::kSocket)}}},
          {"source", report.source},
          {"skipped", report.skipped},
          {"error", report.error}};
}

}  // namespace slime::info
