// switch/p4/tna/switch.p4 as a P4Program: one switch for a job, or the root of switches; one rail
// and one shard; formats of 32-bit words.
#pragma once

#include "switch/p4driver/p4_switch.h"

namespace slime::net {

class TofinoProgram final : public P4Program {
 public:
  explicit TofinoProgram(P4Options options);

  std::vector<TableEntry> device_entries() const override;
  Flooding flooding() const override;
  std::string_view reject_meter() const override;
  CounterCell device_counter(uint32_t number) const override;

  std::string refusal_of(const JobSpec& spec) const override;
  std::vector<TableEntry> job_entries(const JobSpec& spec, const Placement& place) const override;
  std::vector<MulticastGroup> job_groups(const JobSpec& spec,
                                         const Placement& place) const override;
  // None: a half that has another token than the packet is fresh.
  std::vector<RegisterRange> job_registers(const JobSpec& spec,
                                           const Placement& place) const override;
  std::vector<CounterCell> job_counters(const Placement& place) const override;
};

}  // namespace slime::net
