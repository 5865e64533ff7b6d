// In plain words: what keeps NCCL from the plugin, and what to type.
#pragma once

#include <string>
#include <vector>

#include "tools/info/resolve.h"

namespace slime::info {

struct Finding {
  std::string text;
  std::vector<const Era*> eras;  // where it holds, oldest first
};

struct Advice {
  std::vector<Finding> problems;      // they keep NCCL from using the plugin
  std::vector<Finding> hints;         // it would work, but
  std::vector<std::string> commands;  // for a shell; they make it work
};

Advice advise(const std::vector<Resolution>& resolutions, Resolver* resolver);

}  // namespace slime::info
