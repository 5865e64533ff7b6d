#include "switch/p4driver/program.h"

#include <map>
#include <set>

namespace slime::net {

Footprint footprint_of(const JobSpec& spec) {
  return {.slots = spec.slots, .sources = spec.children.size() + 1};
}

std::optional<Placement> find_place(const std::vector<PlacedJob>& placed, const Footprint& wanted,
                                    const P4Traits& traits) {
  std::map<uint32_t, uint32_t> taken;  // first slots, and how many
  std::set<uint32_t> indices;
  size_t sources = wanted.sources;
  for (const PlacedJob& job : placed) {
    taken[job.place.first_slot] = job.footprint.slots;
    indices.insert(job.place.index);
    sources += job.footprint.sources;
  }
  Placement place;
  while (indices.contains(place.index)) ++place.index;
  for (const auto& [first, count] : taken) {
    if (first - place.first_slot >= wanted.slots) break;
    place.first_slot = first + count;
  }
  const bool fits = place.index < traits.jobs &&
                    place.first_slot + uint64_t{wanted.slots} <= traits.slots &&
                    sources <= traits.sources;
  return fits ? std::optional(place) : std::nullopt;
}

// The switch's own address and MAC, and the way to each host.
std::vector<TableEntry> P4Program::device_entries() const {
  const BridgeNames& names = traits_.bridge;
  const auto way_to = [&](uint64_t mac, TableAction action) {
    return TableEntry{names.hosts, {{"hdr.ethernet.destination", 48, mac}}, std::move(action)};
  };
  std::vector<TableEntry> entries = {{names.addresses,
                                      {{"bridge.address", 32, ipv4_of(options_.address)}},
                                      {names.own, {{"mac", 48, options_.mac}}}},
                                     way_to(options_.mac, {names.discard, {}})};
  for (const auto& [mac, port] : ports_by_mac(options_.hosts)) {
    entries.push_back(way_to(mac, {names.forward, {{"port", 9, port}}}));
  }
  return entries;
}

P4Program::Flooding P4Program::flooding() const {
  const BridgeNames& names = traits_.bridge;
  return {.group = group_of_all(kFloodGroup, options_.hosts),
          .table = traits_.bridge.hosts,
          .action = {names.flood, {{"group", 16, kFloodGroup}}}};
}

std::vector<MulticastGroup> P4Program::job_groups(const JobSpec& spec,
                                                  const Placement& place) const {
  const auto count = static_cast<uint32_t>(spec.child_count());
  std::vector<MulticastGroup> groups;
  for (uint32_t rail = 0; rail < spec.rails; ++rail) {
    MulticastGroup group{.id = static_cast<uint16_t>(group_of(place) + rail)};
    for (uint32_t child = 0; child < count; ++child) {
      const uint32_t address = ipv4_of(spec.children[rail * count + child]);
      group.replicas.push_back({end_of(rail, child), options_.hosts.at(address).port});
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<CounterCell> counter_row(const char* array, uint32_t row, uint32_t columns) {
  std::vector<CounterCell> cells;
  for (uint32_t i = 0; i < columns; ++i) cells.push_back({array, row * columns + i});
  return cells;
}

}  // namespace slime::net
