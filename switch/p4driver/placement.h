// Which part of a program's memory a job has. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "switch/core/job.h"
#include "switch/p4driver/options.h"

namespace slime::net {

struct Placement {
  uint32_t index = 0;       // of the job: below P4Traits::jobs
  uint32_t first_slot = 0;  // of its range
};

// What a job takes of what all jobs share, besides an index.
struct Footprint {
  uint32_t slots = 0;  // without a gap
  size_t sources = 0;
};
Footprint footprint_of(const JobSpec& spec);

struct PlacedJob {
  Placement place;
  Footprint footprint;
};

// The first free index, and the first free range of slots that is long enough. Nothing: there is no
// room beside the jobs of `placed`.
std::optional<Placement> find_place(const std::vector<PlacedJob>& placed, const Footprint& wanted,
                                    const P4Traits& traits);

}  // namespace slime::net
