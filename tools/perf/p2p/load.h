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

  uint64_t percentile(double share) const;  // of the latencies
  double mean_ns() const;
  double call_ns() const { return mean_of(calls_ns); }
  double megabytes_per_second() const {
    return ns == 0 ? 0 : static_cast<double>(bytes) * 1e3 / static_cast<double>(ns);
  }

 private:
  double mean_of(uint64_t sum) const {
    return latencies_ns.empty()
               ? 0
               : static_cast<double>(sum) / static_cast<double>(latencies_ns.size());
  }
};

// How requests are made and awaited. `slot` is 0 to concurrency - 1.
struct Requests {
  std::function<Result<void>(uint32_t slot)> begin;
  std::function<Result<void>(uint32_t slot)> wait;
};

// Adds to the sample. The slots are awaited in turns, as their requests end in that order mostly.
Result<void> measure(const Requests& requests, uint32_t concurrency, uint64_t bytes_each,
                     double seconds, Sample* sample);

}  // namespace slime::perf::p2p
