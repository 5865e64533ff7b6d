// Threads that each drive a link of their own, as NCCL's proxies do: is what a work costs the same
// beside other threads?
#pragma once

#include <cstdint>
#include <vector>

#include "bench/common/statistics.h"

namespace slime::bench {

inline constexpr uint32_t kRailsPerThread = 4;  // as on AWS p5: 32 NICs, 8 GPUs

struct ThreadsRow {
  explicit ThreadsRow(uint32_t threads_in) : threads(threads_in) {}

  const uint32_t threads;
  // ns per work. By the clock, of one piece. With more threads than cores a piece is sometimes
  // stopped, which the median does not show and the maximum does.
  Samples sender, receiver;
  // Both ends together, by the processor time of the thread; the time that others had is not in it.
  Samples cpu;
  double works_per_s = 0;  // of all threads together
};

unsigned core_count();
// One thread; as many as there are cores; eight.
std::vector<ThreadsRow> make_threads_rows();
// Messages of 64 stripes in each thread for so long, after a warm-up.
void run_threads(ThreadsRow* row, double seconds);

}  // namespace slime::bench
