// switch/p4/v1model/switch.p4 as a P4Program. It has all formats, rails and shards in powers of
// two, and trees, of one shard. With bmv2's simple_switch, which runs it, it is a SwitchDriver.
//
// Names are those of the compiled program. test/p4/lint.py compares tables, keys, parameters and
// limits, here and in program.cc, with the P4.
//
// Thread rules: any, as every P4Program.
#pragma once

#include "switch/p4driver/p4_switch.h"

namespace slime::net {

namespace v1model {

inline constexpr uint32_t kLanes = 64;  // 32-bit words of a packet
inline constexpr uint32_t kHalves = 16384;
inline constexpr uint32_t kSlots = kHalves / 2;  // of all jobs together
inline constexpr uint32_t kJobs = 64;
inline constexpr uint32_t kSources = 4096;  // addresses of the children and parents of all jobs
inline constexpr uint32_t kCountsOfAJob = 16;
inline constexpr uint32_t kHostEntries = 1024;  // of the forwarding table; one is the switch's own
inline constexpr uint16_t kToParent = 0x8000;
inline constexpr uint16_t kPorts = 511;  // 511 itself means that a packet is dropped

// Registers with the state of a half. With zeros in all of them the half is fresh.
inline constexpr const char* kSlotRegisters[] = {
    "SwitchIngress.aggregate.slot.arrivals", "SwitchIngress.aggregate.slot.epochs",
    "SwitchIngress.aggregate.slot.dones", "SwitchIngress.aggregate.slot.shapes"};
inline constexpr const char* kJobCounts = "SwitchIngress.aggregate.job_counts";
inline constexpr const char* kDeviceCounts = "SwitchIngress.aggregate.device_counts";
inline constexpr const char* kRejectRate = "SwitchIngress.aggregate.reject_rate";
inline constexpr const char* kJobTable = "SwitchIngress.aggregate.job.jobs";

}  // namespace v1model

class Bmv2Program final : public P4Program {
 public:
  explicit Bmv2Program(P4Options options);

  CounterCell device_counter(uint32_t number) const override;

  std::string refusal_of(const JobSpec& spec) const override;
  std::vector<TableEntry> job_entries(const JobSpec& spec, const Placement& place) const override;
  std::optional<MirrorSession> job_mirror(const JobSpec& spec,
                                          const Placement& place) const override;
  std::vector<RegisterRange> job_registers(const JobSpec& spec,
                                           const Placement& place) const override;
  std::vector<CounterCell> job_counters(const Placement& place) const override;
};

// options.runtime: the Thrift server of simple_switch.
Result<std::unique_ptr<P4Switch>> open_bmv2(P4Options options);

}  // namespace slime::net
