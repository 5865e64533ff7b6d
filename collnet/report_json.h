// A worker's report as an object of JSON, for whoever writes documents with such objects in them.
#pragma once

#include <nlohmann/json.hpp>

#include "collnet/report.h"

namespace slime {

inline nlohmann::ordered_json json_of(const WorkerReport& report) {
  nlohmann::ordered_json row;
  row["name"] = report.name;
#define SLIME_FIELD(name, help) row[#name] = report.worker.name;
  SLIME_WORKER_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
#define SLIME_FIELD(name, help) row[#name] = report.port.name;
  SLIME_UDP_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  row["round_trip_ns"] = report.round_trip_ns;
  row["switches"] = report.switches;
  row["lost_switches"] = report.lost_switches;
  row["without_switch"] = report.without_switch();
  return row;
}

}  // namespace slime
