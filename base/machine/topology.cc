#include "base/machine/topology.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace slime {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kDisplayClass = 0x03;  // of PCI: VGA, 3D and other display controllers
// The vendor is checked because the management controllers of servers are display controllers too.
constexpr uint32_t kVendorsOfGpus[] = {0x10de, 0x1002};  // NVIDIA, AMD

std::optional<uint32_t> read_hex(const std::string& path) {
  const auto line = read_line(path);
  if (!line || !line->starts_with("0x")) return std::nullopt;
  return parse_whole<uint32_t>(std::string_view(*line).substr(2), 16);
}

CpuSet read_list(const std::string& path) {
  const auto line = read_line(path);
  return (line ? CpuSet::parse(*line) : std::nullopt).value_or(CpuSet());
}

bool is_gpu(const std::string& device) {
  const auto code = read_hex(device + "/class");
  if (!code || *code >> 16 != kDisplayClass) return false;
  const auto vendor = read_hex(device + "/vendor");
  return vendor && std::ranges::find(kVendorsOfGpus, *vendor) != std::end(kVendorsOfGpus);
}

// "pci0000:00", the directory of a root bus
bool is_host_bridge(std::string_view name) {
  return name.starts_with("pci") && parse_pci_address(std::string(name.substr(3)) + ":00.0");
}

// Host bridge and bridges of place->path. Behind Intel's VMD one host bridge is below another.
void find_bridges(PciPlace* place) {
  const std::string_view path = place->path;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (is_host_bridge(name)) {
      place->host_bridge = path.substr(0, end);
      place->bridges.clear();
    } else if (end < path.size() && parse_pci_address(name)) {
      place->bridges.emplace_back(name);
    }
    at = end + 1;
  }
  // Root port, then an upstream and a downstream port for each switch.
  for (size_t i = 1; i < place->bridges.size(); i += 2) {
    place->switches.push_back(place->bridges[i]);
  }
}

}  // namespace

const char* name_of(Distance distance) {
  switch (distance) {
    case Distance::kSelf:
      return "X";
    case Distance::kPix:
      return "PIX";
    case Distance::kPxb:
      return "PXB";
    case Distance::kPhb:
      return "PHB";
    case Distance::kNode:
      return "NODE";
    case Distance::kSys:
      return "SYS";
  }
  return "?";
}

Distance distance_between(const PciPlace& a, const PciPlace& b) {
  if (a.path == b.path) return Distance::kSelf;
  const bool one_host_bridge = !a.host_bridge.empty() && a.host_bridge == b.host_bridge;
  if (!one_host_bridge) {
    return a.numa_node >= 0 && a.numa_node == b.numa_node ? Distance::kNode : Distance::kSys;
  }
  const bool one_root_port =
      !a.bridges.empty() && !b.bridges.empty() && a.bridges.front() == b.bridges.front();
  if (!one_root_port) return Distance::kPhb;
  return a.switches == b.switches ? Distance::kPix : Distance::kPxb;
}

Topology Topology::read(const std::string& sysfs_root) {
  Topology topology(sysfs_root);
  topology.read_nodes();
  topology.read_gpus();
  return topology;
}

// A kernel without NUMA has no directory of nodes.
void Topology::read_nodes() {
  const std::string system = root_ + "/devices/system/";
  const CpuSet online = read_list(system + "node/online");
  for (size_t number = 0; number < CpuSet::kMost; ++number) {
    if (!online.contains(number)) continue;
    const CpuSet cpus = read_list(system + "node/node" + std::to_string(number) + "/cpulist");
    nodes_.push_back({static_cast<int>(number), socket_of(cpus), cpus});
  }
  if (!nodes_.empty()) return;
  const CpuSet cpus = read_list(system + "cpu/online");
  nodes_.push_back({0, socket_of(cpus), cpus});
}

// The socket of the first CPU stands for that of the node. -1: not known.
int Topology::socket_of(const CpuSet& cpus) const {
  const auto cpu = cpus.first();
  if (!cpu) return -1;
  const auto package = read_number(root_ + "/devices/system/cpu/cpu" + std::to_string(*cpu) +
                                   "/topology/physical_package_id");
  return package && *package >= 0 && *package <= INT_MAX ? static_cast<int>(*package) : -1;
}

void Topology::read_gpus() {
  std::error_code none;
  fs::directory_iterator entry(root_ + "/bus/pci/devices", none);
  for (; !none && entry != fs::directory_iterator(); entry.increment(none)) {
    if (!is_gpu(entry->path())) continue;
    gpus_.push_back(locate(find_pci_function(entry->path())));
  }
  std::ranges::sort(gpus_, {}, [](const PciPlace& gpu) { return parse_pci_address(gpu.path); });
}

// If /sys does not name the node, and only one node has CPUs, it must be that one.
PciPlace Topology::locate(const std::string& pci_path) const {
  PciPlace place;
  place.path = pci_path;
  if (pci_path.empty()) return place;
  find_bridges(&place);
  settle(&place, read_numa_node(pci_path), NodeSource::kSysfs);
  const auto has_cpus = [](const NumaNode& node) { return !node.cpus.empty(); };
  if (place.numa_node < 0 && std::ranges::count_if(nodes_, has_cpus) == 1) {
    settle(&place, std::ranges::find_if(nodes_, has_cpus)->number, NodeSource::kOnlyNode);
  }
  return place;
}

// A node that /sys does not list is ignored.
void Topology::settle(PciPlace* place, int node, NodeSource source) const {
  const auto found = std::ranges::find(nodes_, node, &NumaNode::number);
  if (found == nodes_.end()) return;
  place->numa_node = node;
  place->socket = found->socket;
  place->source = source;
}

// The node is the one that has all CPUs that `source` names.
bool Topology::ask(const LocalitySource& source, PciPlace* place) const {
  const auto address = parse_pci_address(place->path);
  if (!address || place->numa_node >= 0) return false;
  const CpuSet near = source.cpus_near(*address);
  const auto holds = [&near](const NumaNode& node) { return near.is_within(node.cpus); };
  const auto node = std::ranges::find_if(nodes_, holds);
  if (near.empty() || node == nodes_.end()) return false;
  settle(place, node->number, NodeSource::kHwloc);
  return true;
}

}  // namespace slime
