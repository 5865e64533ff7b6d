// What a worker has counted: for log lines, statistics and NCCL_SLIME_STATS.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collnet/udp/udp_port.h"
#include "collnet/worker/options.h"

namespace slime {

struct WorkerReport {
  std::string name;  // "CollNet on eth0, rank 1 of 4"
  WorkerCounters worker;
  UdpCounters port;
  uint64_t round_trip_ns = 0;
  uint32_t switches = 1;       // that were named
  uint32_t lost_switches = 0;  // of these, at the moment
  // The ranks sum up for each other, as none is left.
  bool without_switch() const { return lost_switches == switches; }
  template <typename Take>
  void each_counter(Take take) const {
    worker.each(take);
    port.each(take);
  }
};

// One INFO line: the end of a worker.
void log_report(const WorkerReport& report);
// For documents that have such objects in them.
nlohmann::ordered_json json_of(const WorkerReport& report);

}  // namespace slime
