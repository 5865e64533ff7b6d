// What the control plane knows, for programs: JSON (report.cc), and Prometheus' text format
// (metrics.cc). Both read a Controller and change nothing.
//
// Everything in them is bounded: there are at most ControllerOptions::kMaxJobs jobs. Tenants' names
// have no characters that either format would need to escape.
// Thread rules: the controller's thread.
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
