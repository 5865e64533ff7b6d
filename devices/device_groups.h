// Which NICs form one device. NCCL takes a device for one NIC, so a link uses all NICs of its
// device, and none of another one.
//
// A NIC is here one port with all its rails, such as the sockets of one interface. By default, NICs
// of TCP that are equally near form one device: NCCL does not merge them, and gives each of its
// channels to one of them, so that the slowest NIC, or the one that fails, decides the speed of
// all. Equally near are NICs without a PCI function; and NICs of one NUMA node (of one host bridge,
// where the node is not known) that are equally far from each GPU, so that a GPU with a NIC of its
// own keeps it. A NIC with a tenth of the speed of the fastest or less, as a port for management
// beside ports for data, stays by itself, and so does one with the GUID of another, as a VLAN with
// that of its NIC: both use one cable. RDMA ports do too: NCCL merges the ports of one card, and
// chooses among cards by their distances.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/rail.h"

namespace slime {

struct DeviceGroup {
  std::vector<Rail*> rails;  // kMaxRails at most, NIC by NIC
  std::string reason;        // for people, why its NICs are together; empty: it has one only
};

// `nics_per_device`: so many NICs in the order of the rails; 0: by the rules above. If the NICs of
// a group have more than kMaxRails rails, the group takes fewer of each NIC.
std::vector<DeviceGroup> group_rails(const std::vector<std::unique_ptr<Rail>>& rails,
                                     size_t nics_per_device,
                                     const std::string& sysfs_root = "/sys");

// The rails of these devices as those of one, by the same rule. Empty: there are too many devices.
std::vector<Rail*> join_rails(const std::vector<std::vector<Rail*>>& parts);

}  // namespace slime
