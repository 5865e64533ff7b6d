// The order in which NCCL gets rails, and a check that it can tell them apart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/rail.h"

namespace slime {

// By PCI address, as NCCL numbers NICs and GPUs (the order of paths is another one where bridges
// are nested); virtual ones last. Rails of one function keep their order.
void put_in_order(std::vector<std::unique_ptr<Rail>>* rails);

// One sentence for each rail that has GUID and port of an earlier one on another PCI function: NCCL
// takes both for one port. Interfaces without a PCI function, such as VLANs, do share the port of
// the NIC that they have their address from.
std::vector<std::string> describe_shared_guids(const std::vector<std::unique_ptr<Rail>>& rails);

}  // namespace slime
