// What is measured: requests of one kind, one after the other or several at once, for some time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"

namespace slime::perf::p2p {

// Of one size, over all turns.
struct Sample {
  std::vector<uint64_t> latencies_ns;  // of each request
  uint64_t calls_ns = 0;               // until the calls that begin them have returned, in all
  uint64_t bytes = 0, ns = 0, cpu_ns = 0;
  uint64_t target_cpu_ns = 0;         // of the other rank, meanwhile
  uint64_t works = 0, doorbells = 0;  // of the engine's link

  uint64_t percentile(double share) const;  // of the latencies
  double mean_ns() const;
  double call_ns() const { return mean_of(calls_ns); }
  double cpu_ns_per_byte() const { return quotient(cpu_ns, bytes); }
  double target_cpu_ns_per_byte() const { return quotient(target_cpu_ns, bytes); }
  double doorbells_per_work() const { return quotient(doorbells, works); }
  double megabytes_per_second() const { return quotient(bytes * 1000, ns); }

 private:
  double mean_of(uint64_t sum) const { return quotient(sum, latencies_ns.size()); }
  static double quotient(uint64_t of, uint64_t by) {
    return by == 0 ? 0 : static_cast<double>(of) / static_cast<double>(by);
  }
};

// How requests are made and awaited. `slot` is 0 to concurrency - 1.
struct Requests {
  std::function<Result<void>(uint32_t slot)> begin;
  std::function<Result<void>(uint32_t slot)> wait;
};

uint64_t process_cpu_ns();  // that this process has used

// Adds to the sample. The slots are awaited in turns, as their requests end in that order mostly.
Result<void> measure(const Requests& requests, uint32_t concurrency, uint64_t bytes_each,
                     double seconds, Sample* sample);

}  // namespace slime::perf::p2p
