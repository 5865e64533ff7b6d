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

}  // namespace slime::aggregation
