// Foreign code runs in a child: a plugin that crashes, hangs or changes the process takes nothing
// of ours with it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace slime::info {

// Calls `work` in a forked process and returns what it returned. The child's standard output goes
// to standard error, so that JSON on ours stays whole. `what` names the work in an error.
// The calling process must have one thread only.
Result<nlohmann::json> run_in_child(const std::function<nlohmann::json()>& work, double limit_s,
                                    const std::string& what);

}  // namespace slime::info
