// What the kernel says of devices in /sys.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/machine/cpu_set.h"

namespace slime {

// First line of a small file; nothing where it is absent, or reading it fails: a NIC without a
// carrier answers EINVAL.
std::optional<std::string> read_line(const std::string& path);
std::optional<long> read_number(const std::string& path);

// Domain, bus, device, function: in the order in which NCCL numbers NICs and GPUs.
using PciAddress = std::array<uint32_t, 4>;
// Of a function whose name, "dddd:bb:dd.f", is the last part of `path`; nothing: `path` ends in
// something else. Behind Intel's VMD the domain has five digits or more.
std::optional<PciAddress> parse_pci_address(std::string_view path);

// The device of a virtio or other para-virtual NIC sits below its PCI function: climb to it.
std::string find_pci_function(const std::string& device_link);

// -1: unknown.
int read_numa_node(const std::string& pci_path);

// The CPUs of its NUMA node; all, where the kernel does not know that. Empty: not known.
CpuSet read_local_cpus(const std::string& pci_path);

}  // namespace slime
