// Starts the ranks of a local run, each a process of its own running this same program, and sees
// to it that all of them end.
#pragma once

namespace slime::perf {

// Returns the exit code of the run. SIGINT and SIGTERM are passed on; ranks that are not gone
// `end_grace_s` after that are ended, and soon where such a signal comes again.
int launch(int ranks, double end_grace_s, char** argv);

}  // namespace slime::perf
