// switch/p4/v1model/switch.p4 as a P4Program. It has all formats, rails and shards in powers of
// two, and trees, of one shard. With bmv2's simple_switch, which runs it, it is a SwitchDriver.
#pragma once

#include "switch/p4driver/p4_switch.h"

namespace slime::net {

class Bmv2Program final : public P4Program {
 public:
  explicit Bmv2Program(P4Options options);

  std::vector<TableEntry> device_entries() const override;
  Flooding flooding() const override;
  std::string_view reject_meter() const override;
  CounterCell device_counter(uint32_t number) const override;

  std::string refusal_of(const JobSpec& spec) const override;
  std::vector<TableEntry> job_entries(const JobSpec& spec, const Placement& place) const override;
  std::vector<MulticastGroup> job_groups(const JobSpec& spec,
                                         const Placement& place) const override;
  std::optional<MirrorSession> job_mirror(const JobSpec& spec,
                                          const Placement& place) const override;
  std::vector<RegisterRange> job_registers(const JobSpec& spec,
                                           const Placement& place) const override;
  std::vector<CounterCell> job_counters(const Placement& place) const override;
};

struct Bmv2Options : P4Options {
  SocketAddress runtime;  // Thrift server of simple_switch
  int call_ms = 2000;     // deadline of each call of bmv2
};

Result<std::unique_ptr<P4Switch>> open_bmv2(Bmv2Options options);

}  // namespace slime::net
