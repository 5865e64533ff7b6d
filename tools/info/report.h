// Everything slime-info knows, before it is printed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/info/advice.h"
#include "tools/info/device_query.h"
#include "tools/info/nccl_version.h"
#include "tools/info/options.h"
#include "tools/info/rails_report.h"
#include "tools/info/resolve.h"
#include "tools/info/settings_report.h"
#include "tools/info/topology/report.h"
#include "tools/info/transports/report.h"

namespace slime::info {

struct LoadingReport {
  Request request;
  std::string plugin_source;            // "environment", a file, "--plugin" or "not set"
  std::optional<NcclVersion> nccl;      // nullopt: not known
  std::string nccl_source;              // "--nccl", or the path of a libnccl
  std::vector<Resolution> resolutions;  // the one of `nccl`, else all releases that could
  std::vector<Library> libraries;       // all that were opened or looked for
  Advice advice;
  bool usable = false;
};

struct DevicesReport {
  std::string path;
  std::string called;        // the name in the plugin's table
  bool would_load = false;   // false: the one beside this program, which NCCL would not load
  bool other_build = false;  // of another commit than this program
  DeviceQuery query;
  RailsReport rails;  // only for this plugin
  bool usable = false;
};

struct Report {
  std::optional<LoadingReport> loading;
  std::optional<DevicesReport> devices;
  std::optional<SettingsReport> settings;
  std::optional<TopologyReport> topology;
  std::optional<TransportsReport> transports;

  bool usable() const;
};

Result<Report> collect(const Options& options, const std::map<std::string, std::string>& conf);

}  // namespace slime::info
