#include <algorithm>
#include <optional>
#include <tuple>

#include "tools/info/columns.h"
#include "tools/info/topology/report.h"

namespace slime::info {
namespace {

// A line of the tree below its headings, which are printed where they differ from the last line's.
struct Leaf {
  int socket = -1, node = -1;
  std::vector<std::string> headings;
  std::optional<PciAddress> address;
  std::vector<std::string> words;  // empty: headings only
};

std::string numbered(const char* what, int number) {
  return what + (number < 0 ? " not known" : " " + std::to_string(number));
}

std::string heading_of(const NumaNode& node) {
  return numbered("NUMA node", node.number) + ", CPUs " + node.cpus.to_string();
}

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

std::string describe_rails(const PortPlace& port) {
  return port.transport + (port.rails > 1 ? ", " + std::to_string(port.rails) + " sockets" : "") +
         ", " + std::to_string(port.speed_mbps) + " Mb/s";
}

std::string gpu_name(size_t index) { return "GPU " + std::to_string(index); }

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
  // A node with CPUs alone is shown too.
  for (const NumaNode& node : report.nodes) {
    if (node.cpus.empty()) continue;
    leaves.push_back({node.socket,
                      node.number,
                      {numbered("socket", node.socket), heading_of(node)},
                      std::nullopt,
                      {}});
  }
  std::ranges::stable_sort(
      leaves, {}, [](const Leaf& leaf) { return std::tie(leaf.socket, leaf.node, leaf.address); });
  return leaves;
}

void print_tree(const TopologyReport& report, FILE* out) {
  Columns columns;
  std::vector<std::string> open;
  for (const Leaf& leaf : leaves_of(report)) {
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

void print_distances(const TopologyReport& report, FILE* out) {
  std::vector<const PortPlace*> ports;
  for (const PortPlace& port : report.ports) {
    if (!port.is_virtual()) ports.push_back(&port);
  }
  if (report.gpus.empty() || ports.empty()) return;
  Columns columns;
  std::vector<std::string> header = {""};
  for (const PortPlace* port : ports) header.push_back(port->name);
  columns.add(std::move(header));
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    std::vector<std::string> row = {gpu_name(i)};
    for (const PortPlace* port : ports) {
      row.emplace_back(name_of(distance_between(report.gpus[i], port->place)));
    }
    columns.add(std::move(row));
  }
  fprintf(out,
          "\n  From each GPU to each rail: PIX one switch, PXB several bridges, PHB one root\n"
          "  complex, NODE one NUMA node, SYS NUMA nodes apart or not known\n");
  columns.print("  ", out);
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

}  // namespace slime::info
