// Which ranks are below which switch. Ranks may name different switches, the leaves of a tree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/socket.h"

namespace slime {

struct Branch {
  SocketAddress control;        // of the leaf, as its ranks name it
  std::vector<uint32_t> ranks;  // in order: child i there is ranks[i]; the first asks for all
};

// In the order of their lowest ranks. `controls`: what each rank named, by rank.
std::vector<Branch> branches_of(std::span<const SocketAddress> controls);
// Fails where a switch would have more children than SAP/2 can name.
Result<void> check_branches(std::span<const Branch> branches);

// "1, 4-7": the ranks whose child's bit is not set.
std::string ranks_without(const std::vector<uint32_t>& ranks, uint32_t arrived);

}  // namespace slime
