// The settings as the plugin's parser reads them, and nccl.conf, which NCCL reads before it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tools/info/report.h"

namespace slime::info {
namespace {

constexpr size_t kMaxLine = 4096;  // as NCCL reads them (src/misc/param.cc, setEnvFile)

// Lines that NCCL skips are skipped here: comments, those without a name, and those too long.
void apply_file(const std::string& path, ConfSources* sources) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t equals = line.find('=');
    if (line.starts_with('#') || line.size() >= kMaxLine || equals == std::string::npos ||
        equals == 0 || line.find('\0') != std::string::npos) {
      continue;
    }
    const std::string name = line.substr(0, equals);
    if (getenv(name.c_str()) != nullptr) continue;
    setenv(name.c_str(), line.substr(equals + 1).c_str(), 0);
    (*sources)[name] = path;
  }
}

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

ConfSources apply_nccl_conf() {
  ConfSources sources;
  const char* const chosen = getenv("NCCL_CONF_FILE");
  const char* const home = getenv("HOME");
  if (chosen != nullptr && chosen[0] != '\0') {
    apply_file(chosen, &sources);
  } else if (home != nullptr) {
    apply_file(std::string(home) + "/.nccl.conf", &sources);
  }
  apply_file("/etc/nccl.conf", &sources);
  return sources;
}

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
