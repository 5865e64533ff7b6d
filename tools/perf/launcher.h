// Starts the ranks of a local run, each a process of its own running this same program, and sees
// to it that all of them end.
#pragma once

namespace slime::perf {

// Returns the exit code of the run.
int launch(int ranks, char** argv);

}  // namespace slime::perf
