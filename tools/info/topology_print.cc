// The topology as a tree for people, and as JSON.
#include <algorithm>
#include <optional>
#include <tuple>

#include "tools/info/columns.h"
#include "tools/info/topology.h"

namespace slime {

NLOHMANN_JSON_SERIALIZE_ENUM(NodeSource, {{NodeSource::kNobody, "nobody"},
                                          {NodeSource::kSysfs, "sysfs"},
                                          {NodeSource::kOnlyNode, "only_node"},
                                          {NodeSource::kHwloc, "hwloc"}})

namespace info {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RailGroup, shared, rails)

namespace {

using nlohmann::json;

// A line of the tree below its headings, which are printed where they differ from the last line's.
struct Leaf {
  int socket = -1, node = -1;
  std::vector<std::string> headings;
  std::optional<PciAddress> address = {};
  std::vector<std::string> words = {};  // empty: headings only
};

std::string numbered(const char* what, int number) {
  return what + (number < 0 ? " not known" : " " + std::to_string(number));
}

std::string heading_of(const NumaNode& node) {
  return numbered("NUMA node", node.number) + ", CPUs " + node.cpus.to_string();
}

std::string gpu_name(size_t index) { return "GPU " + std::to_string(index); }

std::string describe_rails(const PortPlace& port) {
  return port.transport + (port.rails > 1 ? ", " + std::to_string(port.rails) + " sockets" : "") +
         ", " + std::to_string(port.speed_mbps) + " Mb/s";
}

// A PCI function below its socket, NUMA node, root complex and switches.
Leaf leaf_at(const PciPlace& place, const TopologyReport& report, std::vector<std::string> words) {
  const auto node = std::ranges::find(report.nodes, place.numa_node, &NumaNode::number);
  Leaf leaf{place.socket,
            place.numa_node,
            {numbered("socket", place.socket),
             node == report.nodes.end() ? numbered("NUMA node", -1) : heading_of(*node),
             "root complex " + root_complex_of(place)},
            parse_pci_address(place.path),
            std::move(words)};
  for (const std::string& name : place.switches) leaf.headings.push_back("switch " + name);
  return leaf;
}

std::vector<Leaf> leaves_of(const TopologyReport& report) {
  std::vector<Leaf> leaves;
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    leaves.push_back(leaf_at(report.gpus[i], report, {gpu_name(i), report.gpus[i].address()}));
  }
  for (const PortPlace& port : report.ports) {
    if (port.is_virtual()) continue;
    leaves.push_back(leaf_at(port.place, report,
                             {"rail " + port.name, port.place.address(), describe_rails(port)}));
  }
  for (const NumaNode& node : report.nodes) {  // one with CPUs alone is shown, too
    if (node.cpus.empty()) continue;
    leaves.push_back(
        {node.socket, node.number, {numbered("socket", node.socket), heading_of(node)}});
  }
  std::ranges::stable_sort(
      leaves, {}, [](const Leaf& leaf) { return std::tie(leaf.socket, leaf.node, leaf.address); });
  return leaves;
}

void print_tree(const TopologyReport& report, FILE* out) {
  Columns columns;
  std::vector<std::string> open;
  for (const Leaf& leaf : leaves_of(report)) {
    // Headings that the line before has too are not repeated.
    const auto differs = std::ranges::mismatch(open, leaf.headings).in2;
    for (auto heading = differs; heading != leaf.headings.end(); ++heading) {
      const auto depth = static_cast<size_t>(heading - leaf.headings.begin());
      columns.add({std::string(2 * depth, ' ') + *heading});
    }
    open = leaf.headings;
    if (leaf.words.empty()) continue;
    std::vector<std::string> row = leaf.words;
    row[0].insert(0, 2 * leaf.headings.size(), ' ');
    columns.add(std::move(row));
  }
  columns.print("  ", out);
}

void print_virtual_rails(const TopologyReport& report, FILE* out) {
  Columns columns;
  for (const PortPlace& port : report.ports) {
    if (port.is_virtual()) columns.add({"  rail " + port.name, describe_rails(port)});
  }
  if (columns.empty()) return;
  fprintf(out, "  without a PCI function: equally far from every GPU\n");
  columns.print("  ", out);
}

// A row for each GPU, a column for each rail that is not virtual.
void print_distances(const TopologyReport& report, FILE* out) {
  Columns columns;
  std::vector<std::string> header = {""};
  for (const PortPlace& port : report.ports) {
    if (!port.is_virtual()) header.push_back(port.name);
  }
  if (report.gpus.empty() || header.size() == 1) return;
  columns.add(std::move(header));
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    std::vector<std::string> row = {gpu_name(i)};
    for (const PortPlace& port : report.ports) {
      if (port.is_virtual()) continue;
      row.emplace_back(name_of(distance_between(report.gpus[i], port.place)));
    }
    columns.add(std::move(row));
  }
  fprintf(out,
          "\n  From each GPU to each rail: PIX one switch, PXB several bridges, PHB one root\n"
          "  complex, NODE one NUMA node, SYS NUMA nodes apart or not known\n");
  columns.print("  ", out);
}

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }
json number_or_null(int number) { return number < 0 ? json() : json(number); }

json place_json(const PciPlace& place) {
  return {{"pci", text_or_null(place.address())},
          {"root_complex", text_or_null(root_complex_of(place))},
          {"switches", place.switches},
          {"numa_node", number_or_null(place.numa_node)},
          {"numa_node_source", place.source},
          {"socket", number_or_null(place.socket)}};
}

}  // namespace

void print_topology(const TopologyReport& report, FILE* out) {
  fprintf(out, "Topology\n");
  print_tree(report, out);
  print_virtual_rails(report, out);
  fprintf(out, "  NUMA nodes are as said by %s\n", report.source.c_str());
  if (report.gpus.empty())
    fprintf(out, "  no GPU: no display controller of NVIDIA or AMD in /sys\n");
  if (!report.error.empty()) fprintf(out, "  no rails: %s\n", report.error.c_str());
  if (report.ports.empty()) {
    for (const std::string& line : report.skipped) fprintf(out, "  not used: %s\n", line.c_str());
  }
  print_distances(report, out);
}

json topology_json(const TopologyReport& report) {
  json nodes = json::array(), gpus = json::array(), rails = json::array();
  json distances = json::array();  // a row for each GPU, a column for each rail; null: virtual
  for (const NumaNode& node : report.nodes) {
    nodes.push_back({{"number", node.number},
                     {"socket", number_or_null(node.socket)},
                     {"cpus", node.cpus.to_string()}});
  }
  for (const PortPlace& port : report.ports) {
    json rail = place_json(port.place);
    rail.update({{"name", port.name},
                 {"transport", port.transport},
                 {"sockets", port.rails},
                 {"speed_mbps", port.speed_mbps}});
    rails.push_back(std::move(rail));
  }
  for (const PciPlace& gpu : report.gpus) {
    gpus.push_back(place_json(gpu));
    json& row = distances.emplace_back(json::array());
    for (const PortPlace& port : report.ports) {
      row.push_back(port.is_virtual() ? json() : json(name_of(distance_between(gpu, port.place))));
    }
  }
  return {{"numa_nodes", nodes},
          {"gpus", gpus},
          {"rails", rails},
          {"distances", distances},
          {"groups",
           {{"switch", group_rails(report, Sharing::kSwitch)},
            {"root_complex", group_rails(report, Sharing::kRootComplex)},
            {"numa_node", group_rails(report, Sharing::kNumaNode)},
            {"socket", group_rails(report, Sharing::kSocket)}}},
          {"source", report.source},
          {"skipped", report.skipped},
          {"error", report.error}};
}

}  // namespace info
}  // namespace slime
