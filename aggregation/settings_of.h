// The settings that a Context runs with: the environment's, and over them what the options say.
#pragma once

#include <slime/aggregation.h>

#include "settings/settings.h"

namespace slime::aggregation {

// Options and environment go through one parser, so a sentence names the setting that an option
// stands for. What is unknown in the environment becomes a warning in the log, in the options an
// error.
Result<Settings> settings_of(const Options& options, const Environment& environment);

}  // namespace slime::aggregation
