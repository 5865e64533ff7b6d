#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/interfaces/interfaces.h"
#include "base/machine/sysfs.h"
#include "base/text.h"

namespace slime {
namespace {

constexpr uint32_t kMaxSpeedMbps = 10'000'000;

std::vector<uint8_t> parse_hardware_address(std::string_view text) {
  std::vector<uint8_t> octets;
  for (size_t at = 0; at + 2 <= text.size(); at += 3) {
    const auto octet = parse_whole<uint8_t>(text.substr(at, 2), 16);
    const bool last = at + 2 == text.size();
    if (!octet || (!last && text[at + 2] != ':')) return {};
    octets.push_back(*octet);
    if (last) return octets;
  }
  return {};
}

// FNV-1a. The top bit keeps it apart from MAC addresses, which have 48 bits.
uint64_t guid_of_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash | uint64_t{1} << 63;
}

uint64_t read_guid(const std::string& device, const std::string& name) {
  const auto line = read_line(device + "/address");
  const std::vector<uint8_t> octets = parse_hardware_address(line ? *line : "");
  // Ethernet has 6 octets; IPoIB has 20, of which the last 8 are the port's GUID (RFC 4391, 9.1.1).
  if (octets.size() != 6 && octets.size() != 20) return guid_of_name(name);
  uint64_t guid = 0;
  for (size_t i = octets.size() == 6 ? 0 : 12; i < octets.size(); ++i) guid = guid << 8 | octets[i];
  return guid != 0 ? guid : guid_of_name(name);
}

// A virtio NIC's link leads to the virtio driver, not to that of its PCI function. A bond has no
// device below it, but a directory of its own (linux/drivers/net/bonding/bond_sysfs.c).
std::string read_driver(const std::string& device) {
  char target[PATH_MAX];
  const ssize_t bytes = readlink((device + "/device/driver").c_str(), target, sizeof target);
  if (bytes > 0) {
    const std::string_view path(target, static_cast<size_t>(bytes));
    return std::string(path.substr(path.find_last_of('/') + 1));  // npos + 1 is 0
  }
  return access((device + "/bonding").c_str(), F_OK) == 0 ? "bonding" : "";
}

}  // namespace

void read_sysfs_facts(const std::string& sysfs_root, Interface* interface) {
  const std::string& name = interface->name;
  interface->guid = guid_of_name(name);
  // The kernel allows no '/' in a name (dev_valid_name); records may come from elsewhere.
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) return;
  const std::string device = sysfs_root + "/class/net/" + name;
  const auto index = read_number(device + "/ifindex");
  if (interface->index != 0 && index && *index != long{interface->index}) return;
  const auto mac = read_line(device + "/address");
  if (!interface->mac.empty() && mac && *mac != interface->mac) return;
  interface->guid = read_guid(device, name);
  interface->pci_path = find_pci_function(device + "/device");
  interface->driver = read_driver(device);
  const auto speed = read_number(device + "/speed");
  interface->speed_known = speed && *speed > 0 && *speed <= long{kMaxSpeedMbps};
  if (interface->speed_known) interface->speed_mbps = static_cast<uint32_t>(*speed);
  const auto mtu = read_number(device + "/mtu");
  if (mtu && *mtu > 0 && *mtu <= INT_MAX) interface->mtu = static_cast<uint32_t>(*mtu);
  interface->numa_node = read_numa_node(interface->pci_path);
}

}  // namespace slime
