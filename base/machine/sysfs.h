// Reads facts about devices in /sys.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/machine/cpu_set.h"

namespace slime {

// The first line of a small file; nullopt if the file is absent, or reading it fails: a NIC without
// a carrier answers EINVAL.
std::optional<std::string> read_line(const std::string& path);
std::optional<long> read_number(const std::string& path);

// Domain, bus, device, function. NCCL numbers NICs and GPUs in this order.
using PciAddress = std::array<uint32_t, 4>;
// The address of the function whose name, "dddd:bb:dd.f", is the last part of `path`; nullopt:
// `path` ends in something else. Behind Intel's VMD the domain has five digits or more.
std::optional<PciAddress> parse_pci_address(std::string_view path);

// The path of the PCI function of a device. The device of a virtio or other para-virtual NIC lies
// below its PCI function.
std::string find_pci_function(const std::string& device_link);

// -1: unknown.
int read_numa_node(const std::string& pci_path);

// The CPUs of the function's NUMA node; all CPUs, if the kernel does not know the node. Empty: not
// known.
CpuSet read_local_cpus(const std::string& pci_path);

}  // namespace slime
