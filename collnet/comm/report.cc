#include "collnet/comm/report.h"

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace slime {

void log_report(const WorkerReport& report) {
  std::string text;
  report.each_counter([&](const char* name, const char*, uint64_t value) {
    text += std::string(name) + " " + std::to_string(value) + ", ";
  });
  std::string without;
  if (report.lost_switches > 0) {
    without = ", without " + std::to_string(report.lost_switches) + " of " +
              std::to_string(report.switches) + " switches at the end";
  }
  if (report.without_switch()) without = ", without the switch at the end";
  SLIME_INFO("%s: %sround trip %.1f us%s", report.name.c_str(), text.c_str(),
             static_cast<double>(report.round_trip_ns) / 1e3, without.c_str());
}

nlohmann::ordered_json json_of(const WorkerReport& report) {
  nlohmann::ordered_json row;
  row["name"] = report.name;
  report.each_counter([&](const char* name, const char*, uint64_t value) { row[name] = value; });
  row["round_trip_ns"] = report.round_trip_ns;
  row["switches"] = report.switches;
  row["lost_switches"] = report.lost_switches;
  row["without_switch"] = report.without_switch();
  return row;
}

}  // namespace slime
