#include "collnet/worker/stragglers.h"

#include <numeric>
#include <utility>

#include "switch/protocol/sap.h"

namespace slime {
namespace {

constexpr uint64_t kReportAgainNs = 5'000'000'000;

}  // namespace

void Stragglers::on_status(const Arrived& arrived, uint64_t now_ns) {
  std::string who = missing(arrived);
  // The round is complete and its result was lost. A switch may say only that in answer to a query;
  // the result comes in answer to the contribution, which is sent again.
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

// The root knows leaves only: one of the ranks below is late, or the leaf itself is gone.
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
