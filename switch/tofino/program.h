// switch/p4/tna/switch.p4 as a P4Program. It is the only switch of a job or the root of a tree,
// with one rail, one shard, and formats of 32-bit words.
//
// Names are those of the compiled program, without that of the pipeline. test/p4/lint.py compares
// tables, keys, parameters and limits, here and in program.cc, with the P4.
//
// Thread rules: any, as every P4Program.
#pragma once

#include "switch/p4driver/p4_switch.h"

namespace slime::net {

namespace tna {

inline constexpr uint32_t kLanes = 32;  // 32-bit words of a packet
inline constexpr uint32_t kHalves = 16384;
inline constexpr uint32_t kSlots = kHalves / 2;  // of all jobs together
inline constexpr uint32_t kJobs = 64;
inline constexpr uint32_t kSources = 4096;  // addresses of the children of all jobs
inline constexpr uint32_t kCountsOfAJob = 16;
inline constexpr uint32_t kHostEntries = 1024;  // of the forwarding table; one is the switch's own
inline constexpr uint16_t kPorts = 512;
inline constexpr uint16_t kPortsOfAPipe = 128;

inline constexpr const char* kJobCounts = "SwitchIngress.ingress.job_counts";
inline constexpr const char* kRoundCounts = "SwitchIngress.ingress.round_counts";
inline constexpr const char* kDeviceCounts = "SwitchIngress.ingress.device_counts";
inline constexpr const char* kRejectCounts = "SwitchIngress.ingress.reject_counts";
inline constexpr const char* kRejectRate = "SwitchIngress.ingress.reject_rate";

}  // namespace tna

class TofinoProgram final : public P4Program {
 public:
  explicit TofinoProgram(P4Options options);

  CounterCell device_counter(uint32_t number) const override;

  std::string refusal_of(const JobSpec& spec) const override;
  std::vector<TableEntry> job_entries(const JobSpec& spec, const Placement& place) const override;
  // None: a half that has another token than the packet is fresh.
  std::vector<RegisterRange> job_registers(const JobSpec& spec,
                                           const Placement& place) const override;
  std::vector<CounterCell> job_counters(const Placement& place) const override;
};

}  // namespace slime::net
