// The rails behind each device, and the interfaces that were passed over: what NCCL's interface
// has no words for. Found by the same code as in the plugin, not through it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "settings/settings.h"

namespace slime::info {

struct RailsReport {
  nlohmann::json devices = nlohmann::json::array();  // name, rails: one object per rail
  std::vector<std::string> skipped;                  // interfaces, and why
  std::string error;
};

RailsReport report_rails(const Settings& settings);

}  // namespace slime::info
