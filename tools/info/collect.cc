// Fills the report: loading, devices with their rails, settings, topology and transports.
#include <slime_version.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "devices/devices.h"
#include "tools/common/net_table.h"
#include "tools/info/report.h"

namespace slime::info {
namespace {

// The NCCL in question. Without --nccl it is no error that none is found.
Result<KnownNccl> find_nccl(const std::string& wanted) {
  if (wanted == "all") return KnownNccl{std::nullopt, "--nccl"};
  const bool file =
      wanted.find('/') != std::string::npos || wanted.find(".so") != std::string::npos;
  if (!wanted.empty() && !file) {
    const auto version = tools::parse_nccl_version(wanted);
    if (!version) return fail(version.error());
    return KnownNccl{*version, "--nccl"};
  }
  auto installed = ask_nccl_version(wanted.empty() ? "libnccl.so.2" : wanted);
  if (!installed && wanted.empty()) return KnownNccl{};
  return installed;
}

std::string source_of_plugin(const Options& options, const Request& request,
                             const ConfSources& conf) {
  if (options.plugin) return "--plugin";
  const auto file = conf.find("NCCL_NET_PLUGIN");
  if (file != conf.end()) return file->second;
  return request.plugin ? "environment" : "not set";
}

LoadingReport collect_loading(const Options& options, const KnownNccl& nccl,
                              const ConfSources& conf, Probe* probe) {
  LoadingReport report;
  report.request = request_from_environment();
  if (options.plugin) report.request.plugin = options.plugin;
  report.plugin_source = source_of_plugin(options, report.request, conf);
  report.nccl = nccl;
  for (const NcclRules& rules : tools::nccl_rules()) {
    // A release that is known has one row. Otherwise all rows count in which the plugin could work.
    const bool meant =
        nccl.version ? &rules == &rules_of(*nccl.version) : rules.last >= tools::kOldestUsable;
    if (meant) report.resolutions.push_back(resolve(rules, report.request, probe));
  }
  advise(&report, probe);
  report.libraries.assign(probe->libraries().begin(), probe->libraries().end());
  return report;
}

// What the newest release in question would use; else what lies beside this program.
DevicesReport collect_devices(const LoadingReport& loading, Probe* probe) {
  DevicesReport report;
  const Attempt* newest = nullptr;
  for (const Resolution& resolution : loading.resolutions) {  // oldest first
    const Attempt* const used = resolution.used();
    if (used != nullptr && used->table >= tools::NetTable::kOldest) newest = used;
  }
  report.would_load = newest != nullptr;
  const std::filesystem::path directory = slime_directory();
  if (newest == nullptr && directory.empty()) {
    report.query.error =
        "no libnet-slime.so in LD_LIBRARY_PATH or beside this program; run 'make' or 'make "
        "install'";
    return report;
  }
  const std::string name =
      newest != nullptr ? newest->name : (directory / "libnet-slime.so").string();
  const Library& library = probe->open(name);
  report.path = library.path;
  report.query.error = library.error;
  report.table = newest != nullptr ? newest->table
                                   : library.newest_table_within(tools::NetTable::kOldest,
                                                                 tools::NetTable::kNewest);
  if (report.table == 0) return report;
  report.query = probe->query(name, report.table);
  report.called = library.net_tables.at(report.table);
  return report;
}

// Rails are found by this program's code, devices by the plugin's: they may differ between builds.
// The plugin names its commit in the line with which it starts (plugin/logger.cc).
bool is_other_build(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) {
    const size_t commit = message.find("(commit ");
    if (commit == std::string::npos) continue;
    return !message.substr(commit).starts_with("(commit " SLIME_COMMIT ")");
  }
  return false;
}

// The rails behind each device, and the interfaces that were not used: NCCL's interface does not
// have them. Found by the same code as in the plugin, not through it.
struct LocalRails {
  std::vector<RailCaps> rails;                 // of all devices, in the order of these
  std::vector<std::string> devices;            // the name of each rail's device
  std::map<std::string, std::string> reasons;  // by device: why its NICs are together
  std::vector<std::string> skipped;            // interfaces, and why
  std::string error;
};

LocalRails find_local_rails(const Settings& settings) {
  LocalRails found;
  const auto devices = Devices::open(settings, SteadyClock::instance());
  if (!devices) {
    found.error = devices.error().what;
    return found;
  }
  found.skipped = (*devices)->notes();
  for (size_t i = 0; i < (*devices)->device_count(); ++i) {
    const Device& device = *(*devices)->device(static_cast<int>(i));
    const DeviceProperties& properties = device.properties();
    if (!properties.reason.empty()) found.reasons[properties.name] = properties.reason;
    for (const Rail* rail : device.rails()) {
      found.rails.push_back(rail->caps());
      found.devices.emplace_back(properties.name);
    }
  }
  return found;
}

nlohmann::json rail_json(const RailCaps& caps) {
  return {{"name", caps.name},
          {"transport", caps.transport},
          {"address", caps.oob_address},
          {"reason", caps.reason},
          {"pciPath", caps.pci_path.empty() ? nlohmann::json() : nlohmann::json(caps.pci_path)},
          {"guid", hex(caps.guid)},
          {"port", caps.port},
          {"numa_node", caps.numa_node},
          {"speed_mbps", caps.speed_mbps},
          {"latency_us", caps.latency_us},
          {"send_queue_depth", caps.send_queue_depth},
          {"max_batch", caps.max_batch},
          {"ll128_safe", caps.lines_in_order}};
}

void add_rails(const LocalRails& local, DevicesReport* report) {
  report->skipped = local.skipped;
  report->rails_error = local.error;
  for (auto& device : report->query.devices) {
    const auto reason = local.reasons.find(device.value("name", ""));
    if (reason != local.reasons.end()) device["grouped"] = reason->second;
    for (size_t i = 0; i < local.rails.size(); ++i) {
      if (device["name"] == local.devices[i]) device["rails"].push_back(rail_json(local.rails[i]));
    }
  }
}

}  // namespace

bool TransportsReport::usable() const {
  const auto works = [](const auto& state) { return state.wanted && !state.rails.empty(); };
  return std::ranges::all_of(states, &TransportState::exists) && std::ranges::any_of(states, works);
}

bool Report::usable() const {
  return (!loading || loading->usable()) && (!devices || devices->usable()) &&
         (!settings || settings->errors.empty()) && (!topology || topology->usable()) &&
         (!transports || transports->usable());
}

Result<Report> collect(const Options& options, const ConfSources& conf) {
  Report report;
  const bool all = options.all();
  if (all || options.loading || options.devices) {
    const auto nccl = find_nccl(options.nccl);
    if (!nccl) return fail(nccl.error());
    Probe probe;
    LoadingReport loading = collect_loading(options, *nccl, conf, &probe);
    if (all || options.devices) report.devices = collect_devices(loading, &probe);
    if (all || options.loading) report.loading = std::move(loading);
  }
  // After the last child process: rails may start threads, and run_in_child() must be called from a
  // process with one thread.
  SettingsReport settings = report_settings(conf);
  const bool ours = report.devices && report.devices->called == kPluginName;
  const LocalRails rails =
      ours || options.topology ? find_local_rails(settings.settings) : LocalRails();
  if (ours) {
    report.devices->other_build = is_other_build(report.devices->query.messages);
    add_rails(rails, &*report.devices);
  }
  if (options.topology) {
    report.topology = describe_topology(Topology::read(), rails.rails, open_hwloc);
    report.topology->skipped = rails.skipped;
    report.topology->error = settings.errors.empty() ? rails.error : settings.errors.front();
  }
  if (options.transports) {
    report.transports = {settings.settings.transports, survey_transports(settings.settings)};
  }
  if (all || options.settings) report.settings = std::move(settings);
  return report;
}

}  // namespace slime::info
