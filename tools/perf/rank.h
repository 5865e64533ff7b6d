// One rank, from joining the others to its exit code.
#pragma once

#include "tools/perf/words.h"
#include "tools/perf/options.h"

namespace slime::perf {

int run_rank(const Options& options, const Identity& identity, const std::string& command);

}  // namespace slime::perf
