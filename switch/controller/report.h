// What the control plane knows, for programs: JSON, and Prometheus' text format.
#pragma once

#include <string>

#include "switch/controller/controller.h"

namespace slime::net {

// `counters`: those of each job and of the data path too, which asks the switch.
std::string report_json(const Controller& controller, bool counters);

// Text format 0.0.4 (Prometheus manual, "Exposition formats").
std::string metrics_text(const Controller& controller);
inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace slime::net
