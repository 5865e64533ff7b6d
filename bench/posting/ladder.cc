#include <algorithm>
#include <memory>
#include <vector>

#include "bench/posting/group.h"
#include "test/support/heap_count.h"

namespace slime::bench {
namespace {

// What one virtual thread did in the counted part of its run.
struct Share {
  RailTotals totals;
  uint64_t allocations = 0;
  uint64_t depth_max = 0;
  double works_per_ns = 0;
};

class Thread {
 public:
  Thread(const Flags& flags, const Regime& regime, uint32_t nics)
      : world_(regime, nics), nics_(nics) {
    const uint32_t per_group = std::min(nics, kGroupNics);
    for (uint32_t first = 0; first < nics; first += per_group) {
      groups_.push_back(std::make_unique<Group>(flags, world_, first, per_group));
    }
  }

  Share measure(const RunLength& length) {
    while (completed_ < length.warm_up * nics_ && !saturated()) turn();
    run(length.settle * nics_);
    const RailTotals before = world_.totals();
    const uint64_t completed = completed_;
    const uint64_t started_ns = world_.network().now_ns(), heap_before = test::heap_allocations();
    run(length.counted * nics_);
    Share share;
    share.allocations = test::heap_allocations() - heap_before;
    share.totals = test::difference(world_.totals(), before);
    share.works_per_ns = static_cast<double>(completed_ - completed) /
                         static_cast<double>(world_.network().now_ns() - started_ns);
    for (const auto& group : groups_) {
      share.depth_max = std::max(share.depth_max, group->depth_max());
    }
    return share;
  }

 private:
  void run(uint64_t works) {
    for (const uint64_t end = completed_ + works; completed_ < end;) turn();
  }
  void turn() {
    completed_ = 0;
    for (const auto& group : groups_) {
      group->turn();
      completed_ += group->completed();
    }
    world_.drain_peers();
  }
  bool saturated() const {
    return std::all_of(groups_.begin(), groups_.end(),
                       [](const auto& group) { return group->saturated(); });
  }

  World world_;
  const uint32_t nics_;
  uint64_t completed_ = 0;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace

Outcome run_ladder_row(const Flags& flags, const Regime& regime, const RunLength& length) {
  Outcome outcome;
  const double line_rate = flags.nics / static_cast<double>(kWireNs);  // works per ns
  for (uint32_t i = 0; i < flags.threads; ++i) {
    Thread thread(flags, regime, flags.nics / flags.threads);
    const Share share = thread.measure(length);
    outcome.works += share.totals.works;
    outcome.doorbells += share.totals.doorbells;
    outcome.futile += share.totals.futile_posts;
    outcome.polls += share.totals.polls;
    outcome.allocations += share.allocations;
    outcome.depth_max = std::max(outcome.depth_max, share.depth_max);
    outcome.line_share += share.works_per_ns / line_rate;
  }
  outcome.bounded = flags.cap > 0;
  return outcome;
}

}  // namespace slime::bench
