// SIGTERM or SIGINT as a request to end early and well: for runs that last until somebody has seen
// enough (--duration).
#pragma once

#include <cstdint>

namespace slime::perf {

// Signals that come so soon after the first are the same request: timeout(1) sends it to a process
// and to its group.
inline constexpr uint64_t kSameRequestNs = 1000000000;

// From here on the first such signal is a request; another one ends the process as it always does.
void catch_end_requests();
bool end_requested();

}  // namespace slime::perf
