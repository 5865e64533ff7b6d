// From options to a path.
#pragma once

#include <slime/aggregation.h>

#include <memory>

#include "aggregation/path.h"
#include "settings/settings.h"

namespace slime::aggregation {

struct Opened {
  std::unique_ptr<Path> path;
  Settings settings;
  Mode mode = Mode::kNormal;
};
Result<Opened> open_path(const Options& options);

// The settings that a Context runs with: the environment's, and over them what the options say.
// Options and environment go through one parser, so a sentence names the setting that an option
// stands for. What is unknown in the environment becomes a warning in the log, in the options an
// error.
Result<Settings> settings_of(const Options& options, const Environment& environment);

}  // namespace slime::aggregation
