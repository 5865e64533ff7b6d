// What a worker has counted, in the words of the public header.
#pragma once

#include <slime/aggregation.h>

#include <string>

#include "collnet/report.h"

namespace slime::aggregation {

Statistics statistics_of(const WorkerReport& report);
std::string json_text_of(const WorkerReport& report);

}  // namespace slime::aggregation
