// Runs the rows of the table. A row has two halves, out of place and in place, and a half has timed
// operations and then checked ones. With --duration a half is repeated until its time is over, and
// the ranks check every 0.2 s, or after each operation that takes longer, for a request to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/perf/collective/communicator.h"

namespace slime::perf {

// Bytes that the send buffer and the receive buffer need, each.
size_t buffer_bytes(const Options& options, int ranks);

// Calls `show` on every rank after each row (see report.h); the figures are the same everywhere.
// `ended_early`: a signal has asked for it (progress.h), and all ranks have agreed: rows may be
// missing.
Result<void> run_benchmark(const RunSetup& setup, Communicator* communicator,
                           const std::function<void(const nlohmann::json&)>& show,
                           bool* ended_early);

}  // namespace slime::perf
