// How near the GPUs, NICs and CPUs of a host are to each other: what NCCL, too, reads from /sys.
//
// Facts: the path of a PCI function in /sys names its host bridge ("pci0000:00") and every bridge
// on the way; class, vendor and numa_node are files of the function
// (Documentation/ABI/testing/sysfs-bus-pci); nodes, their CPUs and sockets are below
// devices/system. A file that is absent or malformed is a fact that is not known, never an error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine/cpu_set.h"
#include "base/machine/sysfs.h"

namespace slime {

// The words of `nvidia-smi topo -m` and of NCCL, from near to far.
enum class Distance : uint8_t {
  kSelf,  // X: one function
  kPix,   // PIX: one switch, or functions of one card
  kPxb,   // PXB: several bridges, but no host bridge
  kPhb,   // PHB: one host bridge (root complex)
  kNode,  // NODE: host bridges of one NUMA node
  kSys,   // SYS: NUMA nodes apart, or not known
};
const char* name_of(Distance distance);

// Who said on which NUMA node a function is.
enum class NodeSource : uint8_t { kNobody, kSysfs, kOnlyNode, kHwloc };

// Where a PCI function is plugged in.
struct PciPlace {
  std::string path;                   // realpath in /sys; empty: virtual, and all else is unknown
  std::string host_bridge;            // path of "pci0000:00", the root complex; empty: none
  std::vector<std::string> bridges;   // from the root port down, as "0000:00:01.0"
  std::vector<std::string> switches;  // those of `bridges` that are upstream ports of switches
  int numa_node = -1;                 // -1: unknown
  int socket = -1;
  NodeSource source = NodeSource::kNobody;

  std::string address() const { return path.substr(path.find_last_of('/') + 1); }
};

Distance distance_between(const PciPlace& a, const PciPlace& b);  // neither of them virtual

struct NumaNode {
  int number = 0;
  int socket = -1;  // physical package; -1: unknown, or the node has memory only
  CpuSet cpus;
};

// Somebody else who may know what /sys does not say.
class LocalitySource {
 public:
  virtual ~LocalitySource() = default;
  virtual CpuSet cpus_near(const PciAddress& address) const = 0;  // empty: not known
  virtual const std::string& name() const = 0;                    // with its version
};

// libhwloc, where it is installed. It takes as long as reading all of /sys, so it is for tools: the
// plugin has no use for it.
Result<std::unique_ptr<LocalitySource>> open_hwloc();

// The host as it was when it was read. Immutable; any thread.
class Topology {
 public:
  static Topology read(const std::string& sysfs_root = "/sys");

  const std::vector<NumaNode>& nodes() const { return nodes_; }  // by number; one at least
  const std::vector<PciPlace>& gpus() const { return gpus_; }    // by PCI address
  PciPlace locate(const std::string& pci_path) const;
  // The node of `place`, if it is unknown, as `source` says. False: it does not know either.
  bool ask(const LocalitySource& source, PciPlace* place) const;

 private:
  explicit Topology(const std::string& sysfs_root) : root_(sysfs_root) {}
  void read_nodes();
  void read_gpus();
  int socket_of(const CpuSet& cpus) const;
  void settle(PciPlace* place, int node, NodeSource source) const;

  std::string root_;
  std::vector<NumaNode> nodes_;
  std::vector<PciPlace> gpus_;
};

}  // namespace slime
