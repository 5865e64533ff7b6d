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

std::vector<MulticastGroup> groups_of_children(const JobSpec& spec, const Hosts& hosts,
                                               uint16_t first) {
  const auto count = static_cast<uint32_t>(spec.child_count());
  std::vector<MulticastGroup> groups;
  for (uint32_t rail = 0; rail < spec.rails; ++rail) {
    MulticastGroup group{.id = static_cast<uint16_t>(first + rail)};
    for (uint32_t child = 0; child < count; ++child) {
      const uint32_t address = ipv4_of(spec.children[rail * count + child]);
      group.replicas.push_back({end_of(rail, child), hosts.at(address).port});
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
