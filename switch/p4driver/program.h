// What P4Switch must know of a P4 program: its limits, which jobs it cannot have, and the entries,
// groups, registers and counters of the device and of each job. Bmv2Program is one, for
// switch/p4/v1model.
//
// Nothing here changes and nothing is sent: an object has the options of its switch, which check()
// has found possible for its traits, and each function calculates from them and its arguments.
//
// Thread rules: any.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "switch/p4driver/entry.h"
#include "switch/p4driver/placement.h"

namespace slime::net {

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

  // Of the device, whatever jobs it has: own address, hosts, and what else the program needs.
  virtual std::vector<TableEntry> device_entries() const = 0;
  virtual Flooding flooding() const = 0;
  // The counter with that number in SLIME_SHARD_COUNTERS.
  virtual CounterCell device_counter(uint32_t number) const = 0;

  // Why the program cannot have a job that any switch could have (Shard::check), that is within the
  // traits, and whose addresses are among the hosts of the options. Empty: it can.
  virtual std::string refusal_of(const JobSpec& spec) const = 0;

  // Of one job. All its addresses are among the hosts of the options; no two jobs have the same
  // index or slot.

  // In the order in which they are added. The last one opens the job: without it no packet takes
  // part. It depends on generation and token, so that a fence changes it. Entries whose key depends
  // on them come after all whose key does not.
  virtual std::vector<TableEntry> job_entries(const JobSpec& spec,
                                              const Placement& place) const = 0;
  virtual std::vector<MulticastGroup> job_groups(const JobSpec& spec,
                                                 const Placement& place) const = 0;
  // The way to the job's parent that the program needs besides the entries. Nothing: none.
  virtual std::optional<MirrorSession> job_mirror(const JobSpec&, const Placement&) const {
    return std::nullopt;
  }
  // What must be zero where a job begins, or a generation of it. Empty: a new token is enough.
  virtual std::vector<RegisterRange> job_registers(const JobSpec& spec,
                                                   const Placement& place) const = 0;
  // In the order of SLIME_JOB_COUNTERS. There may be more, which are zeroed only.
  virtual std::vector<CounterCell> job_counters(const Placement& place) const = 0;

 private:
  const P4Traits traits_;
  const P4Options options_;
};

}  // namespace slime::net
