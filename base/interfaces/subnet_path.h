// Which way an interface's packets go to its own subnet, for people. Where several interfaces have
// addresses in one subnet, that is rarely what they expect (route.h).
#pragma once

#include <string>

#include "base/interfaces/interfaces.h"

namespace slime {

// "packets to 10.0.0.0/20 leave by it"; or "... are routed over eth0, so connections are bound to
// this interface", and the sysctls of IPv4 that help where that is not enough (ip-sysctl.rst of
// Linux). Empty: its subnet is not known or has no other address, or it is loopback.
std::string describe_path(const Interface& interface,
                          const std::string& sysctl_root = "/proc/sys/net/ipv4/conf");

}  // namespace slime
