// The distances between the GPUs, NICs and CPUs of a host. They come from /sys, as NCCL's do.
//
// The path of a PCI function in /sys names its host bridge ("pci0000:00") and every bridge on the
// way. Class, vendor and numa_node are files of the function
// (Documentation/ABI/testing/sysfs-bus-pci). Nodes, their CPUs and sockets are below
// devices/system. If a file is absent or malformed, its fact is not known; that is never an error.
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
  kSys,   // SYS: different NUMA nodes, or not known
};
const char* name_of(Distance distance);

// The source of the NUMA node of a function.
enum class NodeSource : uint8_t { kNobody, kSysfs, kOnlyNode, kHwloc };

// The place of a PCI function in the host.
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

// Another source for facts that /sys does not have.
class LocalitySource {
 public:
  virtual ~LocalitySource() = default;
  virtual CpuSet cpus_near(const PciAddress& address) const = 0;  // empty: not known
  virtual const std::string& name() const = 0;                    // with its version
};

// libhwloc, if it is installed. It takes as long as reading all of /sys, so only tools use it.
Result<std::unique_ptr<LocalitySource>> open_hwloc();

// The host's topology at the time of read(). It never changes, so any thread may use it.
class Topology {
 public:
  static Topology read(const std::string& sysfs_root = "/sys");

  const std::vector<NumaNode>& nodes() const { return nodes_; }  // by number; one at least
  const std::vector<PciPlace>& gpus() const { return gpus_; }    // by PCI address
  PciPlace locate(const std::string& pci_path) const;
  // Sets the node of `place`, if it is unknown, from `source`. False: `source` does not know it.
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
