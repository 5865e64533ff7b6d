// Starts the ranks of a local run, each a process of its own running this same program, and sees
// to it that all of them end.
#pragma once

namespace slime::perf {

// Returns the exit code of the run. SIGINT, SIGTERM and SIGHUP reach the ranks as SIGTERM; those
// that are still there 3 s later are killed. With `ends_on_request` the first one is a request
// (end_request.h), and they may take their time.
int launch(int ranks, bool ends_on_request, char** argv);

}  // namespace slime::perf
