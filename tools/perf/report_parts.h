// What each rank adds to the report: the counters of its rails, and what it has used.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tools/perf/counters.h"
#include "tools/perf/words.h"
#include "tools/perf/result.h"

namespace slime::perf {

// Once the plugin has written its counters.
nlohmann::json part_of_report(const CounterFile& counters);

// `parts`: of all ranks, in their order.
Result<void> add_parts(const std::vector<nlohmann::json>& parts, const std::vector<RankInfo>& ranks,
                       Report* report);

}  // namespace slime::perf
