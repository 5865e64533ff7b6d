#include "switch/tofino/program.h"

#include <set>

#include "switch/tofino/entries.h"

namespace slime::net {
namespace {

using namespace tna;

constexpr P4Traits kTraits{.device = "tofino2",
                           .process = "bf_switchd",
                           .lanes = kLanes,
                           .formats = sap::kWordFormats,
                           .shards = 1,
                           .slots = kSlots,
                           .jobs = kJobs,
                           .sources = kSources,
                           .hosts = kHostEntries,
                           .ports = kPorts};

// Of SLIME_SHARD_COUNTERS: this one and the next are apart from the others.
constexpr uint32_t kRejectsSent = 4;
// Of SLIME_JOB_COUNTERS.
constexpr uint32_t kRounds = 1;

}  // namespace

TofinoProgram::TofinoProgram(P4Options options) : P4Program(kTraits, std::move(options)) {}

std::vector<TableEntry> TofinoProgram::device_entries() const {
  std::vector<TableEntry> entries = {own_address(options().address, options().mac),
                                     no_way_to(options().mac)};
  for (const auto& [mac, port] : ports_by_mac(options().hosts)) {
    entries.push_back(way_to(mac, port));
  }
  return entries;
}

P4Program::Flooding TofinoProgram::flooding() const {
  return {group_of_all(kFloodGroup, options().hosts), kForwarding, flood()};
}

std::string_view TofinoProgram::reject_meter() const { return kRejectRate; }

CounterCell TofinoProgram::device_counter(uint32_t number) const {
  if (number < kRejectsSent) return {kDeviceCounts, number};
  return {kRejectCounts, number - kRejectsSent};
}

std::string TofinoProgram::refusal_of(const JobSpec& spec) const {
  if (spec.rails > 1) return "the P4 program takes one rail; set NCCL_SLIME_SWITCH_RAILS=1";
  if (spec.parent) {
    return "the P4 program for Tofino is no leaf of a tree; name its control channel at all ranks, "
           "or make it the root";
  }
  std::set<uint16_t> pipes;
  for (const SocketAddress& child : spec.children) {
    pipes.insert(options().hosts.at(ipv4_of(child)).port / kPortsOfAPipe);
  }
  if (pipes.size() > 1) {
    return "its children are at ports of several pipes, which have no registers in common; connect "
           "them to ports of one pipe (128 in a row)";
  }
  return "";
}

std::vector<TableEntry> TofinoProgram::job_entries(const JobSpec& spec,
                                                   const Placement& place) const {
  std::vector<TableEntry> entries = address_entries(spec, options());
  entries.push_back(job_entry(spec, place));
  entries.push_back(generation_entry(spec));
  entries.push_back(member_entry(spec, place, false));
  entries.push_back(member_entry(spec, place, true));
  return entries;
}

std::vector<MulticastGroup> TofinoProgram::job_groups(const JobSpec& spec,
                                                      const Placement& place) const {
  MulticastGroup group{.id = group_of(place.index)};
  for (uint32_t child = 0; child < spec.child_count(); ++child) {
    const uint32_t address = ipv4_of(spec.children[child]);
    group.replicas.push_back({static_cast<uint16_t>(child), options().hosts.at(address).port});
  }
  return {std::move(group)};
}

std::vector<RegisterRange> TofinoProgram::job_registers(const JobSpec&, const Placement&) const {
  return {};
}

std::vector<CounterCell> TofinoProgram::job_counters(const Placement& place) const {
  std::vector<CounterCell> cells;
  for (uint32_t i = 0; i < kCountsOfAJob; ++i) {
    cells.push_back({kJobCounts, place.index * kCountsOfAJob + i});
  }
  cells[kRounds] = {kRoundCounts, place.index};
  return cells;
}

}  // namespace slime::net
