// The table entries of a job, by the names of the compiled program (switch/p4/tna/switch.p4),
// without that of the pipeline. test/p4/lint.py compares tables, keys, parameters and limits with
// the P4. Pure functions.
#pragma once

#include "switch/p4driver/entry.h"
#include "switch/p4driver/placement.h"

namespace slime::net::tna {

inline constexpr uint32_t kLanes = 32;  // 32-bit words of a packet
inline constexpr uint32_t kHalves = 16384;
inline constexpr uint32_t kSlots = kHalves / 2;  // of all jobs together
inline constexpr uint32_t kJobs = 64;
inline constexpr uint32_t kSources = 4096;  // addresses of the children of all jobs
inline constexpr uint32_t kCountsOfAJob = 16;
inline constexpr uint32_t kHostEntries = 1024;  // of the forwarding table; one is the switch's own
inline constexpr uint16_t kPorts = 512;
inline constexpr uint16_t kPortsOfAPipe = 128;

// Multicast groups: all ports, then each job's children.
inline constexpr uint16_t kFloodGroup = 1;
constexpr uint16_t group_of(uint32_t job_index) { return static_cast<uint16_t>(2 + job_index); }

inline constexpr const char* kJobCounts = "SwitchIngress.ingress.job_counts";
inline constexpr const char* kRoundCounts = "SwitchIngress.ingress.round_counts";
inline constexpr const char* kDeviceCounts = "SwitchIngress.ingress.device_counts";
inline constexpr const char* kRejectCounts = "SwitchIngress.ingress.reject_counts";
inline constexpr const char* kRejectRate = "SwitchIngress.ingress.reject_rate";
inline constexpr const char* kForwarding = "SwitchIngress.ingress.frames.hosts";

// The switch itself, and the way to each host.
TableEntry own_address(const SocketAddress& address, uint64_t mac);
TableEntry way_to(uint64_t mac, uint16_t port);
TableEntry no_way_to(uint64_t mac);
TableAction flood();

// Number and generation of a job, and its rounds: with the last entry a packet of it takes part.
TableEntry job_entry(const JobSpec& spec, const Placement& place);
TableEntry generation_entry(const JobSpec& spec);
TableEntry member_entry(const JobSpec& spec, const Placement& place, bool odd);
// Two for each child: one knows its packets by their source, the other gives packets to it their
// destination. The hosts of the options have all of the job's addresses.
std::vector<TableEntry> address_entries(const JobSpec& spec, const P4Options& options);

}  // namespace slime::net::tna
