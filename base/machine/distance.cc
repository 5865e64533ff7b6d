
#include <algorithm>

#include "base/machine/topology.h"

namespace slime {

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

}  // namespace slime
