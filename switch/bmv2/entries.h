// The table entries of a job, by the names of the compiled program (switch/p4/v1model/switch.p4).
// test/p4/lint.py compares tables, keys, parameters and limits with the P4. Pure functions.
#pragma once

#include "switch/p4driver/entry.h"
#include "switch/p4driver/placement.h"

namespace slime::net::v1model {

inline constexpr uint32_t kLanes = 64;  // 32-bit words of a packet
inline constexpr uint32_t kHalves = 16384;
inline constexpr uint32_t kSlots = kHalves / 2;  // of all jobs together
inline constexpr uint32_t kJobs = 64;
inline constexpr uint32_t kSources = 4096;  // addresses of the children and parents of all jobs
inline constexpr uint32_t kCountsOfAJob = 16;
inline constexpr uint32_t kHostEntries = 1024;  // of the forwarding table; one is the switch's own
inline constexpr uint16_t kToParent = 0x8000;
inline constexpr uint16_t kPorts = 511;  // 511 itself means that a packet is dropped

// Multicast groups: all ports, then each job's children on each of its rails.
inline constexpr uint16_t kFloodGroup = 1;
constexpr uint16_t group_of(uint32_t job_index, uint32_t rail) {
  return static_cast<uint16_t>(2 + job_index * sap::kMaxRails + rail);
}
// The number of a replica: the rail and the child that it goes to.
constexpr uint16_t end_of(uint32_t rail, uint32_t child) {
  return static_cast<uint16_t>(rail * sap::kMaxChildren + child);
}

// Registers that say what a half is; zeroed, they make it fresh.
inline constexpr const char* kSlotRegisters[] = {
    "SwitchIngress.aggregate.slot.arrivals", "SwitchIngress.aggregate.slot.epochs",
    "SwitchIngress.aggregate.slot.dones", "SwitchIngress.aggregate.slot.shapes"};
inline constexpr const char* kJobCounts = "SwitchIngress.aggregate.job_counts";
inline constexpr const char* kDeviceCounts = "SwitchIngress.aggregate.device_counts";
inline constexpr const char* kRejectRate = "SwitchIngress.aggregate.reject_rate";
inline constexpr const char* kJobTable = "SwitchIngress.aggregate.job.jobs";
inline constexpr const char* kForwarding = "SwitchIngress.bridge.hosts";

// The switch itself, and the way to each host.
TableEntry own_address(const SocketAddress& address, uint64_t mac);
TableEntry way_to(uint64_t mac, uint16_t port);
TableEntry no_way_to(uint64_t mac);
TableAction flood();

// The hosts of the options, or `hosts`, have all of the job's addresses.
TableEntry job_entry(const JobSpec& spec, const Placement& place, const P4Options& options);
// Two entries for each child and rail, and for the parent: one knows its packets by their source,
// the other gives packets to it their destination.
std::vector<TableEntry> address_entries(const JobSpec& spec, const Hosts& hosts);

}  // namespace slime::net::v1model
