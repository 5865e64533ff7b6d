#include "collnet/worker/branches.h"

#include <algorithm>

#include "switch/protocol/sap.h"

namespace slime {
namespace {

void append(std::string* text, uint32_t first, uint32_t last) {
  if (!text->empty()) *text += ", ";
  *text += std::to_string(first);
  if (last > first) *text += (last > first + 1 ? "-" : ", ") + std::to_string(last);
}

}  // namespace

std::vector<Branch> branches_of(std::span<const SocketAddress> controls) {
  std::vector<Branch> branches;
  for (uint32_t rank = 0; rank < controls.size(); ++rank) {
    const auto at = std::ranges::find(branches, controls[rank], &Branch::control);
    if (at != branches.end()) {
      at->ranks.push_back(rank);
    } else {
      branches.push_back({controls[rank], {rank}});
    }
  }
  return branches;
}

Result<void> check_branches(std::span<const Branch> branches) {
  const auto too_many = [](size_t count, const std::string& what) {
    return fail(make_error(Status::kConfig, 0,
                           "%zu %s, and a switch has at most %u children; spread them over more "
                           "switches below one parent (NCCL_SLIME_SWITCH of each host)",
                           count, what.c_str(), sap::kMaxChildren));
  };
  if (branches.size() > sap::kMaxChildren) {
    return too_many(branches.size(), "switches were named by the ranks");
  }
  for (const Branch& branch : branches) {
    if (branch.ranks.size() <= sap::kMaxChildren) continue;
    return too_many(branch.ranks.size(), "ranks name the switch at " + branch.control.to_string());
  }
  return {};
}

std::string ranks_without(const std::vector<uint32_t>& ranks, uint32_t arrived) {
  std::string text;
  for (size_t child = 0; child < ranks.size(); ++child) {
    const auto missing = [&](size_t i) {
      return i < ranks.size() && i < sap::kMaxChildren && (arrived >> i & 1) == 0;
    };
    if (!missing(child)) continue;
    const uint32_t first = ranks[child];
    while (missing(child + 1) && ranks[child + 1] == ranks[child] + 1) ++child;
    append(&text, first, ranks[child]);
  }
  return text;
}

}  // namespace slime
