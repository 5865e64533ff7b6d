// What one job has on a P4 device: entries, multicast groups, a range of slots and a row of
// counters.
//
// States: closed, open (its packets take part) or lost (the device has forgotten it). install()
// opens it. The first step of uninstall() closes it. If either has failed, a part of the job may be
// on the device, and uninstall() goes on from there. A failed fence() leaves it open, possibly
// without the entries of any generation.
// Invariants: entries_ and groups_ name everything that the device has of the job, unless the
// connection ended; then the device is lost. The entry that opens the job is added last and removed
// first, so no packet finds an incomplete job.
// Thread rules: those of its P4Switch, which owns the runtime and the program, and outlives it.
#pragma once

#include "switch/p4driver/program.h"
#include "switch/p4driver/runtime.h"

namespace slime::net {

class P4Job {
 public:
  P4Job(P4Runtime& runtime, const P4Program& program, JobSpec spec, const Placement& place)
      : runtime_(runtime), program_(program), spec_(std::move(spec)), place_(place) {}

  bool is_open() const { return state_ == State::kOpen; }
  bool is_lost() const { return state_ == State::kLost; }
  PlacedJob placed() const { return {place_, footprint_of(spec_)}; }

  Result<void> install();
  // Stops at a part that cannot be removed.
  Result<void> uninstall();
  // For an open job. If it fails, fence it again, or remove it.
  Result<void> fence(uint8_t generation, uint32_t token);
  // Zeros if the job is lost, because its counters are, too.
  Result<JobTotals> totals() const;
  void lose();

 private:
  enum class State : uint8_t { kClosed, kOpen, kLost };

  Result<void> add(const TableEntry& entry);
  Result<void> replace_entries(std::vector<TableEntry> wanted);
  Result<void> clear_slots();

  P4Runtime& runtime_;
  const P4Program& program_;
  JobSpec spec_;
  const Placement place_;
  State state_ = State::kClosed;
  std::vector<TableEntry> entries_;  // in the order in which they were added
  std::vector<uint16_t> groups_;     // likewise
};

}  // namespace slime::net
