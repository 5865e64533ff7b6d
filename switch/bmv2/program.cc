#include "switch/bmv2/program.h"

#include <bit>

#include "switch/bmv2/entries.h"
#include "switch/bmv2/runtime.h"

namespace slime::net {
namespace {

using namespace v1model;

constexpr P4Traits kTraits{.device = "bmv2",
                           .process = "simple_switch",
                           .lanes = kLanes,
                           .formats = sap::kKnownFormats,
                           .shards = sap::kMaxShards,
                           .slots = kSlots,
                           .jobs = kJobs,
                           .sources = kSources,
                           .hosts = kHostEntries,
                           .ports = kPorts};

}  // namespace

Bmv2Program::Bmv2Program(P4Options options) : P4Program(kTraits, std::move(options)) {}

std::vector<TableEntry> Bmv2Program::device_entries() const {
  std::vector<TableEntry> entries = {own_address(options().address, options().mac),
                                     no_way_to(options().mac)};
  for (const auto& [mac, port] : ports_by_mac(options().hosts)) {
    entries.push_back(way_to(mac, port));
  }
  return entries;
}

P4Program::Flooding Bmv2Program::flooding() const {
  return {group_of_all(kFloodGroup, options().hosts), kForwarding, flood()};
}

std::string_view Bmv2Program::reject_meter() const { return kRejectRate; }

CounterCell Bmv2Program::device_counter(uint32_t number) const { return {kDeviceCounts, number}; }

std::string Bmv2Program::refusal_of(const JobSpec& spec) const {
  if (!std::has_single_bit(spec.rails)) {
    return "the P4 program takes 1, 2, 4 or 8 rails; set NCCL_SLIME_SWITCH_RAILS";
  }
  if ((spec.parent || spec.children_are_switches) && options().shards > 1) {
    return "in a tree the P4 program has one shard; set data.shards to 1 on all switches";
  }
  return "";
}

std::vector<TableEntry> Bmv2Program::job_entries(const JobSpec& spec,
                                                 const Placement& place) const {
  std::vector<TableEntry> entries = address_entries(spec, options().hosts);
  entries.push_back(job_entry(spec, place, options()));
  return entries;
}

std::vector<MulticastGroup> Bmv2Program::job_groups(const JobSpec& spec,
                                                    const Placement& place) const {
  const auto count = static_cast<uint32_t>(spec.child_count());
  std::vector<MulticastGroup> groups;
  for (uint32_t rail = 0; rail < spec.rails; ++rail) {
    MulticastGroup group{.id = group_of(place.index, rail)};
    for (uint32_t child = 0; child < count; ++child) {
      const uint32_t address = ipv4_of(spec.children[rail * count + child]);
      group.replicas.push_back({end_of(rail, child), options().hosts.at(address).port});
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::optional<MirrorSession> Bmv2Program::job_mirror(const JobSpec& spec,
                                                     const Placement& place) const {
  if (!spec.parent) return std::nullopt;
  const uint16_t port = options().hosts.at(ipv4_of(spec.parent->address)).port;
  return MirrorSession{static_cast<uint16_t>(place.index), port};
}

std::vector<RegisterRange> Bmv2Program::job_registers(const JobSpec& spec,
                                                      const Placement& place) const {
  std::vector<RegisterRange> ranges;
  for (const char* array : kSlotRegisters) {
    ranges.push_back({array, 2 * place.first_slot, 2 * (place.first_slot + spec.slots)});
  }
  return ranges;
}

std::vector<CounterCell> Bmv2Program::job_counters(const Placement& place) const {
  std::vector<CounterCell> cells;
  for (uint32_t i = 0; i < kCountsOfAJob; ++i) {
    cells.push_back({kJobCounts, place.index * kCountsOfAJob + i});
  }
  return cells;
}

Result<std::unique_ptr<P4Switch>> open_bmv2(Bmv2Options options) {
  auto runtime = std::make_unique<Bmv2Runtime>(options.runtime, options.call_ms);
  return P4Switch::open(std::move(runtime), std::make_unique<Bmv2Program>(std::move(options)));
}

}  // namespace slime::net
