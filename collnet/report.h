// What a worker has counted: for log lines, statistics and NCCL_SLIME_STATS.
#pragma once

#include <string>

#include "collnet/udp_port.h"
#include "collnet/worker.h"

namespace slime {

struct WorkerReport {
  std::string name;  // "CollNet on eth0, rank 1 of 4"
  WorkerCounters worker;
  UdpCounters port;
  uint64_t round_trip_ns = 0;
  bool without_switch = false;
};

// One INFO line: the end of a worker.
void log_report(const WorkerReport& report);

}  // namespace slime
