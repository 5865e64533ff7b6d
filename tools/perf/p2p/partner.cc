#include "tools/perf/p2p/partner.h"

#include <slime_version.h>

#include <string>

namespace slime::perf::p2p {

Result<void> Partner::join(const Options& options) {
  const rendezvous::Agreement agreement{identity_.token, identity_.size,
                                        std::string(SLIME_VERSION) + " " + SLIME_COMMIT,
                                        common_arguments(options)};
  if (identity_.size != 2) {
    return fail(Status::kConfig, "p2p is for 2 ranks, not %d", identity_.size);
  }
  if (is_initiator()) {
    auto coordinator = rendezvous::Coordinator::start(identity_, agreement, options.timeout_s);
    if (!coordinator) return fail(std::move(coordinator.error()));
    coordinator_ = std::move(*coordinator);
  }
  auto member =
      rendezvous::Member::join(identity_, agreement, options.timeout_s, &heartbeat_, [] {});
  if (!member) return fail(std::move(member.error()));
  member_ = std::move(*member);
  return {};
}

Result<nlohmann::json> Partner::exchange(const char* label, nlohmann::json part) {
  heartbeat_.enter(label);
  auto all = member_->exchange(label, std::move(part));
  if (!all) return fail(std::move(all.error()));
  return (*all)[is_initiator() ? 1 : 0];
}

Result<void> Partner::meet(const char* label) {
  if (auto met = exchange(label, {}); !met) return fail(std::move(met.error()));
  return {};
}

}  // namespace slime::perf::p2p
