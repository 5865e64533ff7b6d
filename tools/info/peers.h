// The engines of libslime that this user has, in this network namespace
// (peer/engine/status_port.h).
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace slime::info {

// What each engine says of itself. One that does not answer in time is left out, with a line on
// standard error.
Result<std::vector<nlohmann::json>> ask_engines();
void print_engines(const std::vector<nlohmann::json>& engines, FILE* out);

}  // namespace slime::info
