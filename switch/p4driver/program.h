// The description of a P4 program for P4Switch: its limits, the jobs that it cannot have, and the
// entries, groups, registers and counters of the device and of each job. There are two programs:
// Bmv2Program and TofinoProgram.
//
// A program has no state but the options of its switch, which check() has accepted for its traits.
// Each function computes its answer from them and its arguments, and sends nothing.
//
// Thread rules: any.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "switch/core/job.h"
#include "switch/p4driver/options.h"

namespace slime::net {

// Which part of a program's memory a job has.
struct Placement {
  uint32_t index = 0;       // of the job: below P4Traits::jobs
  uint32_t first_slot = 0;  // of its range
};

// What a job takes of what all jobs share, apart from its index.
struct Footprint {
  uint32_t slots = 0;  // without a gap
  size_t sources = 0;
};
Footprint footprint_of(const JobSpec& spec);

struct PlacedJob {
  Placement place;
  Footprint footprint;
};

// The first free index, and the first free range of slots that is long enough. Nothing: there is no
// room beside the jobs of `placed`.
std::optional<Placement> find_place(const std::vector<PlacedJob>& placed, const Footprint& wanted,
                                    const P4Traits& traits);

// Multicast groups of a switch: all ports, then each job's children on each of its rails. A replica
// has the number of the end that it goes to: the rail and the child.
inline constexpr uint16_t kFloodGroup = 1;
constexpr uint16_t end_of(uint32_t rail, uint32_t child) {
  return static_cast<uint16_t>(rail * sap::kMaxChildren + child);
}
// Row `row` of an array of counters.
std::vector<CounterCell> counter_row(const char* array, uint32_t row, uint32_t columns);

class P4Program {
 public:
  // How a frame to an unknown MAC reaches all ports: the default action of a table names a group.
  struct Flooding {
    MulticastGroup group;
    std::string_view table;
    TableAction action;
  };

  P4Program(const P4Traits& traits, P4Options options)
      : traits_(traits), options_(std::move(options)) {}
  virtual ~P4Program() = default;
  P4Program(const P4Program&) = delete;
  P4Program& operator=(const P4Program&) = delete;

  const P4Traits& traits() const { return traits_; }
  const P4Options& options() const { return options_; }
  // The group of a job's first rail; those of its other rails follow.
  uint16_t group_of(const Placement& place) const {
    return static_cast<uint16_t>(kFloodGroup + 1 + place.index * traits_.rails);
  }

  // Entries that do not depend on jobs: own address, and the hosts.
  virtual std::vector<TableEntry> device_entries() const;
  virtual Flooding flooding() const;
  // The counter with that number in SLIME_SHARD_COUNTERS.
  virtual CounterCell device_counter(uint32_t number) const = 0;

  // Why the program cannot have this job; empty: it can. The caller has checked that the job is
  // possible at all (Shard::check), within the traits, and has only addresses of known hosts.
  virtual std::string refusal_of(const JobSpec& spec) const = 0;

  // What follows is for one job. All its addresses are among the hosts of the options, and no two
  // jobs share an index or a slot.

  // The entries in the order in which they are added. The last one opens the job: without it no
  // packet takes part. It depends on generation and token, so that a fence changes it. Entries
  // whose key depends on these come after all others.
  virtual std::vector<TableEntry> job_entries(const JobSpec& spec,
                                              const Placement& place) const = 0;
  // A group for each rail, since a result goes to all children over the rail of its slot.
  virtual std::vector<MulticastGroup> job_groups(const JobSpec& spec, const Placement& place) const;
  // A mirroring session, if the program needs one to reach the job's parent.
  virtual std::optional<MirrorSession> job_mirror(const JobSpec&, const Placement&) const {
    return std::nullopt;
  }
  // Registers that must be zero when a generation begins. Empty: a new token is enough.
  virtual std::vector<RegisterRange> job_registers(const JobSpec& spec,
                                                   const Placement& place) const = 0;
  // Counters in the order of SLIME_JOB_COUNTERS. There may be more, which are only cleared.
  virtual std::vector<CounterCell> job_counters(const Placement& place) const = 0;

 private:
  const P4Traits traits_;
  const P4Options options_;
};

}  // namespace slime::net
