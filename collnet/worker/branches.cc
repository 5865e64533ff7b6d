#include "collnet/worker/branches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "switch/protocol/sap.h"

namespace slime {
namespace {

constexpr uint64_t kReportAgainNs = 5'000'000'000;

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
    return fail(Status::kConfig,
                "%zu %s, and a switch has at most %u children; spread them over more switches "
                "below one parent (NCCL_SLIME_SWITCH of each host)",
                count, what.c_str(), sap::kMaxChildren);
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

void Stragglers::on_status(const Arrived& arrived, uint64_t now_ns) {
  std::string who = missing(arrived);
  // No child is missing: the round is complete, and its result was lost. Such a status may be all
  // that a switch answers to a query. It sends the result when the contribution comes again.
  if (who.empty()) return arrived_.reset();
  arrived_ = arrived;
  if (reported_ == arrived_ || now_ns < report_again_ns_) return;
  report_again_ns_ = now_ns + kReportAgainNs;
  reported_ = arrived_;
  report_ = std::move(who);
}

void Stragglers::clear() {
  arrived_.reset();
  reported_.reset();
}

std::optional<std::string> Stragglers::take_report() { return std::exchange(report_, {}); }

std::string Stragglers::missing(const Arrived& arrived) const {
  if (!arrived.direct && !branches_.empty()) {
    return arrived.at_root ? missing_branches(arrived.bits)
                           : ranks_without(branches_[own_branch_].ranks, arrived.bits);
  }
  std::vector<uint32_t> all(std::min(contributors_, sap::kMaxChildren));
  std::iota(all.begin(), all.end(), 0);
  return ranks_without(all, arrived.bits);
}

// The root has a bit for each leaf only: either a rank below that leaf is late, or the leaf is
// gone.
std::string Stragglers::missing_branches(uint32_t arrived) const {
  std::string text;
  for (uint32_t i = 0; i < branches_.size() && i < sap::kMaxChildren; ++i) {
    if (arrived >> i & 1) continue;
    text += (text.empty() ? "" : "; ") + ranks_without(branches_[i].ranks, 0) +
            " (below the switch at " + branches_[i].control.to_string() + ")";
  }
  return text;
}

}  // namespace slime
