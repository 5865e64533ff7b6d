// What a run that fails says on standard error.
#pragma once

#include "tools/perf/words.h"

namespace slime::perf {

// `verdict` is all ranks', `error` what this rank itself has met; no member: it is no rank yet.
void show_failure(int rank, const Member* member, const Error& verdict, const Error& error);

}  // namespace slime::perf
