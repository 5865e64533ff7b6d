#include "switch/p4driver/placement.h"

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

}  // namespace slime::net
