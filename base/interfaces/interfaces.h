// The network interfaces of this host that can be rails of IP transports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/interfaces/address_range.h"
#include "base/machine/cpu_set.h"
#include "base/net/socket.h"

namespace slime {

struct Interface {
  std::string name;
  unsigned index = 0;     // in this network namespace; 0: not known
  std::string mac;        // as the kernel and /sys write it, "02:00:..."; empty: not known
  SocketAddress address;  // port 0; the first usable IPv4 address, else a global IPv6 one
  std::string subnet;     // of the address, as "10.1.0.0/16"; empty: not known
  std::string pci_path;   // realpath of the PCI function in /sys; empty: virtual
  std::string driver;     // its name in /sys, as "ena"; "bonding" for a bond; empty: not known
  uint64_t guid = 0;      // from the MAC address, else from the name; the same at every start
  uint32_t speed_mbps = 10000;  // where it is not known, as in NCCL (transport/net_socket.cc)
  uint32_t mtu = 0;             // bytes; 0: not known
  bool speed_known = false;     // the driver reports the speed
  int numa_node = -1;           // -1: unknown
  bool loopback = false;
};

struct InterfaceList {
  std::vector<Interface> interfaces;  // by PCI address, virtual ones last, then by name
  std::vector<std::string> notes;     // interfaces that were skipped, and why
};

// Fills in of the interface with this name what /sys says of it: all but index, MAC, address and
// loopback. If index or MAC are others there, /sys shows another network namespace (that of the
// host, in some containers), and nothing is taken from it.
void read_sysfs_facts(const std::string& sysfs_root, Interface* interface);

// What the kernel says of an interface besides its addresses.
struct LinkFacts {
  unsigned index = 0;    // 0: not known
  unsigned master = 0;   // index of the bridge or bond that it is a part of; 0: none
  uint32_t mtu = 0;      // bytes; 0: not known
  std::string kind;      // as `ip link add type` names it; empty: a NIC, or not known
  std::string mac = {};  // as in Interface
};

// One line of getifaddrs(3): an interface, or one address of it.
struct InterfaceRecord {
  std::string name;
  unsigned flags = 0;  // IFF_*
  std::optional<SocketAddress> address = {};
  int prefix_bits = -1;  // of the address's subnet; -1: not known
  LinkFacts link = {};

  // "eth0:1" is a label of an address of eth0 (ip-address(8)), no interface of its own.
  std::string interface() const { return name.substr(0, name.find(':')); }
};
Result<std::vector<InterfaceRecord>> interface_records();

// Which addresses may be used.
struct AddressWish {
  std::vector<AddressRange> ranges;  // one of them has the address; empty: any
  sa_family_t family = AF_UNSPEC;    // AF_UNSPEC: any
};

// Selects interfaces by `pattern`, in the syntax of NCCL_SOCKET_IFNAME: a comma-separated list of
// name prefixes; "^..." excludes them, "=..." compares whole names. As in NCCL, a list selects
// every interface that it allows and that is up: "^eth0" selects loopback and docker0 too. Without
// a list, bridges of containers are skipped, and the best of these classes that is there is used:
// NICs, and what is made of them or stands for one in a container; tunnels, VPNs, dummies, bridges
// without a NIC; interfaces with a link-local address only; loopback. The notes name `variable` as
// the source of the pattern. Ranges of addresses choose as a list of names does; where there is a
// list too, both must hold.
InterfaceList select_interfaces(std::string_view pattern,
                                const std::vector<InterfaceRecord>& records,
                                const std::string& sysfs_root = "/sys",
                                const std::string& variable = "NCCL_SLIME_IFNAME",
                                const AddressWish& wanted = {});

// `subnets`: text of ranges; empty: all addresses. `family`: "AF_INET", "AF_INET6", or any other
// word for both.
Result<InterfaceList> list_interfaces(std::string_view pattern,
                                      const std::string& variable = "NCCL_SLIME_IFNAME",
                                      std::string_view subnets = {}, std::string_view family = {});

// The name of this host's interface that has this address; empty: none has.
std::string interface_with(const SocketAddress& address);

// The CPUs near the NIC with this address. Empty: they are not known, or the address belongs to a
// virtual interface, or to all interfaces (0.0.0.0).
CpuSet cpus_near(const SocketAddress& address, const std::vector<InterfaceRecord>& records,
                 const std::string& sysfs_root = "/sys");

}  // namespace slime
