// What /sys tells about one network interface.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

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

// Domain, bus, device, function: for sorting. False: `path` does not end in a PCI address.
using PciAddress = std::array<uint32_t, 4>;
bool parse_pci_address(std::string_view path, PciAddress* address);

}  // namespace slime
