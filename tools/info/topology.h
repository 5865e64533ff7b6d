// Where GPUs and rails are plugged in, and how far they are from each other.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/machine/topology.h"
#include "transports/rail.h"

namespace slime::info {

// A port of a NIC with all its rails: sockets of one interface have one place.
struct PortPlace {
  std::string name;
  std::string transport;
  size_t rails = 0;
  uint64_t speed_mbps = 0;  // of all of them
  PciPlace place;

  bool is_virtual() const { return place.path.empty(); }
};

struct TopologyReport {
  std::vector<NumaNode> nodes;
  std::vector<PciPlace> gpus;
  std::vector<PortPlace> ports;           // in the order of NCCL's devices
  std::string source;                     // where the NUMA nodes of GPUs and ports are from
  std::vector<std::string> skipped = {};  // interfaces, and why
  std::string error = {};                 // why the plugin has no rails

  bool usable() const { return error.empty() && !ports.empty(); }
};

using OpenLocalitySource = std::function<Result<std::unique_ptr<LocalitySource>>()>;

// Of `rails` on the host of `topology`. The other source is opened only if /sys lacks the NUMA node
// of a GPU or a port.
TopologyReport describe_topology(const Topology& topology, const std::vector<RailCaps>& rails,
                                 const OpenLocalitySource& open_other);

// Names of rails that share something; those that share it with no other rail stand alone.
struct RailGroup {
  std::string shared;  // "0000:11:00.0"
  std::vector<std::string> rails;
};
enum class Sharing : uint8_t { kSwitch, kRootComplex, kNumaNode, kSocket };
std::vector<RailGroup> group_rails(const TopologyReport& report, Sharing sharing);

std::string root_complex_of(const PciPlace& place);  // "0000:10"

void print_topology(const TopologyReport& report, FILE* out);
nlohmann::json topology_json(const TopologyReport& report);

}  // namespace slime::info
