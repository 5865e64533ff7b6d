// Starts the ranks of a local run, each a process of its own running this same program, and sees to
// it that all of them end.
#pragma once

#include <cstdint>

namespace slime::rendezvous {

struct LocalRun {
  const char* program = "";  // for sentences
  int ranks = 2;
  // The first SIGINT or SIGTERM is a request to end early and well; ranks may take their time.
  bool ends_on_request = false;
  // Codes above this one mean that the other ranks must end too.
  int last_good_code = 1;
  int failed_code = 3, interrupted_code = 130;
};

// Signals that come so soon after the first are the same request: timeout(1) sends it to a process
// and to its group.
inline constexpr uint64_t kSameRequestNs = 1000000000;

// Returns the exit code of the run. SIGINT, SIGTERM and SIGHUP reach the ranks as SIGTERM; those
// that are still there 3 s later are killed.
int launch(const LocalRun& run, char** argv);

}  // namespace slime::rendezvous
