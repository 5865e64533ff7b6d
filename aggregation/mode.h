// The debugging modes by name.
#pragma once

#include <slime/aggregation.h>

#include <string>

#include "base/error.h"

namespace slime::aggregation {

const char* name_of(Mode mode);
// Of NCCL_SLIME_DEBUG_MODE; empty: kNormal.
Result<Mode> mode_of(const std::string& name);
// A line for the log: what results are worth now.
const char* warning_of(Mode mode);

}  // namespace slime::aggregation
