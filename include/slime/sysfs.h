// What the kernel says of devices in /sys.
#pragma once

#include <optional>
#include <string>

namespace slime {

// First line of a small file; nothing where it is absent, or reading it fails: a NIC without a
// carrier answers EINVAL.
std::optional<std::string> read_line(const std::string& path);
std::optional<long> read_number(const std::string& path);

// The device of a virtio or other para-virtual NIC sits below its PCI function: climb to it.
std::string find_pci_function(const std::string& device_link);

// -1: unknown.
int read_numa_node(const std::string& pci_path);

}  // namespace slime
