// The settings as the plugin's parser reads them.
#include <algorithm>
#include <iterator>

#include "tools/info/report.h"

namespace slime::info {
namespace {

// The parser stops at the first value it refuses. Trying each variable alone shows all of them.
Environment without_refused(const Environment& environment, std::vector<std::string>* errors) {
  if (parse_settings(environment)) return environment;
  Environment accepted;
  for (const auto& [name, value] : environment) {
    const auto alone = parse_settings({{name, value}});
    if (alone) accepted[name] = value;
    if (!alone) errors->push_back(alone.error().what);
  }
  return accepted;
}

}  // namespace

SettingsReport report_settings(const ConfSources& conf) {
  SettingsReport report;
  const Environment accepted = without_refused(process_environment(), &report.errors);
  const auto settings = parse_settings(accepted, &report.warnings);
  if (settings) report.settings = *settings;
  std::ranges::move(unusable_here(report.settings), std::back_inserter(report.warnings));
  if (!settings) report.errors.push_back(settings.error().what);
  report.rows = describe(report.settings, accepted);
  for (SettingRow& row : report.rows) {
    const auto file = conf.find(row.source);
    if (file != conf.end()) row.source += " in " + file->second;
  }
  return report;
}

}  // namespace slime::info
