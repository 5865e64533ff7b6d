#include "aggregation/statistics.h"

#include "collnet/report_json.h"

namespace slime::aggregation {

// A counter that the public struct lacks does not compile.
Statistics statistics_of(const WorkerReport& report) {
  Statistics statistics;
#define SLIME_FIELD(name, help) statistics.name = report.worker.name;
  SLIME_WORKER_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
#define SLIME_FIELD(name, help) statistics.name = report.port.name;
  SLIME_UDP_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  statistics.round_trip_ns = report.round_trip_ns;
  statistics.without_switch = report.without_switch();
  statistics.switches = report.switches;
  statistics.lost_switches = report.lost_switches;
  return statistics;
}

// An interface's name need not be UTF-8; a replacement character beats no statistics.
std::string json_text_of(const WorkerReport& report) {
  return json_of(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace slime::aggregation
