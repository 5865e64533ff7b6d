// A host whose loopback interface has a PCI function in /sys.
#pragma once

#include <functional>

namespace slime::boundary {

// Runs `body` on such a host: in a child process, where another directory lies over /sys/class/net.
// Checks that fail there fail the test, and where no such process can be made, the test is skipped.
void on_pci_loopback(const std::function<void()>& body);

}  // namespace slime::boundary
