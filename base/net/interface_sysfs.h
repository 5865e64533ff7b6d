// The facts of /sys about one network interface.
#pragma once

#include <cstdint>
#include <string>

namespace slime {

struct SysfsFacts {
  std::string pci_path;  // empty: virtual
  std::string driver;    // empty: not known
  uint64_t guid = 0;
  uint32_t speed_mbps = 10000;
  uint32_t mtu = 0;
  bool speed_known = false;
  int numa_node = -1;
};

SysfsFacts read_sysfs_facts(const std::string& sysfs_root, const std::string& name);

}  // namespace slime
