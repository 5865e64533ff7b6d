#include "tools/info/settings_report.h"

namespace slime::info {

namespace {

// The parser stops at the first value it refuses. Trying each variable alone shows all of them.
Environment without_refused(const Environment& environment, std::vector<std::string>* errors) {
  if (parse_settings(environment)) return environment;
  Environment accepted;
  for (const auto& [name, value] : environment) {
    const auto alone = parse_settings({{name, value}});
    if (alone) {
      accepted[name] = value;
    } else {
      errors->push_back(alone.error().what);
    }
  }
  return accepted;
}

}  // namespace

SettingsReport report_settings(const std::map<std::string, std::string>& conf) {
  SettingsReport report;
  const Environment accepted = without_refused(process_environment(), &report.errors);
  auto settings = parse_settings(accepted, &report.warnings);
  if (settings) {
    report.settings = *settings;
  } else {
    report.errors.push_back(settings.error().what);
  }
  report.rows = describe(report.settings, accepted);
  for (SettingRow& row : report.rows) {
    const auto file = conf.find(row.source);
    if (file != conf.end()) row.source += " in " + file->second;
  }
  return report;
}

}  // namespace slime::info
