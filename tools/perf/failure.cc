#include "tools/perf/failure.h"

#include <cstdio>

#include "tools/perf/net_api.h"

namespace slime::perf {
namespace {

// A warning of the plugin's was shown when it came.
std::string without_warning(const std::string& verdict) {
  const size_t warning = verdict.find("; plugin: ");
  if (warning == std::string::npos || !warnings_are_shown() || is_consequence(verdict)) {
    return verdict;
  }
  return verdict.substr(0, warning) + "; the plugin's warning above says why";
}

}  // namespace

// The cause is told once, by rank 0; the others add what they have seen besides it, and nothing if
// that only follows from it. A rank that was killed or is silent has told nobody: all name it.
void show_failure(int rank, const Member* member, const Error& verdict, const Error& error) {
  const bool told =
      verdict.what.find(error.what) != std::string::npos || is_consequence(error.what);
  const bool reported = member != nullptr && member->was_reported();
  const bool usage = verdict.status == Status::kConfig;  // all ranks have the same command line
  const bool first = rank == 0 || member == nullptr;
  if (!first && told && (usage || reported)) return;
  std::string text = verdict.what;
  if (reported && !first) text = "ends with the others";
  if (reported && first) text = without_warning(text) + (usage ? "" : "; all ranks end");
  fprintf(stderr, "slime-perf: rank %d: %s%s%s\n", rank, text.c_str(),
          told ? "" : "\n  seen here as: ", told ? "" : error.what.c_str());
}

}  // namespace slime::perf
