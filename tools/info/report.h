// The whole report of slime-info, before it is printed: main.cc parses the command line, collect()
// fills a Report, and print_text() and to_json() show the same Report.
#pragma once

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/nccl_conf.h"
#include "tools/info/loading.h"
#include "tools/info/topology.h"
#include "transports/registry.h"

namespace slime::info {

struct Options {
  bool devices = false, loading = false, settings = false, topology = false;
  bool transports = false;
  bool markdown = false;
  bool peers = false;  // and nothing else
  bool json = false;
  std::optional<std::string> plugin;  // instead of NCCL_NET_PLUGIN
  std::string nccl;                   // a version, a libnccl to ask, or "all"; empty: look for one

  // None of them: the first three.
  bool all() const { return !devices && !loading && !settings && !topology && !transports; }
};

struct DevicesReport {
  std::string path;
  std::string called;        // the name in the plugin's table
  int table = 0;             // n of ncclNetPlugin_v<n>; 0: none that can be asked
  bool would_load = false;   // false: the one beside this program, which NCCL would not load
  bool other_build = false;  // of another commit than this program
  DeviceQuery query;         // devices of this plugin have "rails": one object per rail
  std::vector<std::string> skipped;  // interfaces without rails, and why
  std::string rails_error;

  bool usable() const { return query.error.empty() && !query.devices.empty(); }
};

// The plugin's settings as its parser reads them, with everything that is wrong with them.
struct SettingsReport {
  Settings settings;
  std::vector<SettingRow> rows;       // refused values are shown as the default
  std::vector<std::string> errors;    // any of them leaves NCCL without devices
  std::vector<std::string> warnings;  // unknown names, and what this host cannot do
};

// Which transports there are, what each finds on this host, and why others find nothing.
struct TransportsReport {
  std::string variable;  // NCCL_SLIME_TRANSPORTS as it is set
  std::vector<TransportState> states;

  bool usable() const;  // one that is wanted has rails, and all that are wanted exist
};

struct Report {
  std::optional<LoadingReport> loading;
  std::optional<DevicesReport> devices;
  std::optional<SettingsReport> settings;
  std::optional<TopologyReport> topology;
  std::optional<TransportsReport> transports;

  bool usable() const;
};

using tools::ConfSources;
SettingsReport report_settings(const ConfSources& conf);

Result<Report> collect(const Options& options, const ConfSources& conf);

void print_text(const Report& report, bool long_settings, FILE* out);
void print_devices(const DevicesReport& devices, FILE* out);
nlohmann::json to_json(const Report& report);

std::string hex(uint64_t number);  // "0x00000000000000ff"

}  // namespace slime::info
