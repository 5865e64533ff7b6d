// SIGTERM or SIGINT as a request to end early and well: for runs that last until somebody has seen
// enough (--duration).
#pragma once

namespace slime::perf {

// From here on the first such signal is a request. One that comes more than a second later ends the
// process as it always does; sooner, it is the same one, as timeout(1) sends it to a process and to
// its group.
void catch_end_requests();
bool end_requested();

}  // namespace slime::perf
