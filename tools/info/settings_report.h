// The plugin's settings as its parser sees them, with everything that is wrong with them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "settings/settings.h"

namespace slime::info {

struct SettingsReport {
  Settings settings;
  std::vector<SettingRow> rows;       // refused values are shown as the default
  std::vector<std::string> errors;    // any of them leaves NCCL without devices
  std::vector<std::string> warnings;  // unknown names
};

// `conf`: variable -> file, for those that come from nccl.conf.
SettingsReport report_settings(const std::map<std::string, std::string>& conf);

}  // namespace slime::info
