// The facts of /sys about one network interface.
#pragma once

#include <string>

#include "base/net/interfaces.h"

namespace slime {

// Fills in of the interface with this name what /sys says of it: all but address and loopback.
void read_sysfs_facts(const std::string& sysfs_root, Interface* interface);

}  // namespace slime
