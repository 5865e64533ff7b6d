// Counts what a load does once it is warm: for the rows with the engine or libslime in place of the
// loops.
//
// A Load is one thread's work. It is made of its number of NICs, a Regime, a seed and what else the
// row gives it, and has these functions:
//
//   turn()       takes one turn of the thread's loop
//   completed()  says how many works are done so far
//   channels()   gives the channels of the sender, whose counters are read
//   now_ns()     reads the thread's virtual clock
#pragma once

#include <algorithm>
#include <cstdint>

#include "bench/posting/model.h"
#include "test/support/heap_count.h"
#include "test/support/load/engine_pair.h"

namespace slime::bench {

inline constexpr uint64_t kWarmUp =
    6'000;  // works per NIC: until all of the simulator's queues have been full

// What a load has done since it was made.
struct Progress {
  RailTotals totals;
  uint64_t completed, now_ns, allocations;
};

template <typename Load>
Progress progress_of(const Load& load) {
  return {test::sum_counters(load.channels()), load.completed(), load.now_ns(),
          test::heap_allocations()};
}

// Adds what one thread of the shape did between `before` and `after`.
inline void add_thread(const Shape& shape, const Progress& before, const Progress& after,
                       Outcome* outcome) {
  const RailTotals totals = test::difference(after.totals, before.totals);
  outcome->works += totals.works;
  outcome->doorbells += totals.doorbells;
  outcome->futile += totals.futile_posts;
  outcome->polls += totals.polls;
  outcome->allocations += after.allocations - before.allocations;
  outcome->depth_max = std::max(outcome->depth_max, totals.queue_depth_max);
  const double line_rate = shape.nics_per_thread / static_cast<double>(kWireNs);  // works per ns
  outcome->line_share += static_cast<double>(after.completed - before.completed) /
                         static_cast<double>(after.now_ns - before.now_ns) / line_rate /
                         shape.threads;
}

template <typename Load>
void complete_works(Load& load, uint64_t works) {
  for (const uint64_t end = load.completed() + works; load.completed() < end;) load.turn();
}

// Runs the threads of the shape one after the other, each with a load and a seed of its own. `more`
// goes to every load.
template <typename Load, typename... More>
Outcome run_threads(const Shape& shape, const Regime& regime, const RunLength& length,
                    uint64_t seed, More... more) {
  const uint32_t nics = shape.nics_per_thread;
  Outcome outcome;
  for (uint32_t i = 0; i < shape.threads; ++i) {
    Load load(nics, regime, seed + i * 1000, more...);
    complete_works(load, kWarmUp * nics);
    const Progress before = progress_of(load);
    complete_works(load, length.counted * nics);
    add_thread(shape, before, progress_of(load), &outcome);
  }
  return outcome;
}

}  // namespace slime::bench
