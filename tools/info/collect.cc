#include <slime_version.h>

#include <cstdlib>

#include "tools/info/report.h"
#include "tools/info/search_path.h"

namespace slime::info {
namespace {

using Sources = std::map<std::string, std::string>;

struct KnownNccl {
  std::optional<NcclVersion> version;
  std::string source;
};

Result<KnownNccl> find_nccl(const std::string& wanted) {
  if (wanted == "all") return KnownNccl{std::nullopt, "--nccl"};
  const bool file =
      wanted.find('/') != std::string::npos || wanted.find(".so") != std::string::npos;
  if (!wanted.empty() && !file) {
    const auto version = parse_nccl_version(wanted);
    if (!version) return fail(version.error());
    return KnownNccl{*version, "--nccl"};
  }
  const auto installed = ask_nccl_version(wanted.empty() ? "libnccl.so.2" : wanted);
  if (installed) return KnownNccl{installed->version, installed->path};
  if (wanted.empty()) return KnownNccl{};
  return fail(installed.error());
}

std::string source_of_plugin(const Options& options, const Request& request, const Sources& conf) {
  if (options.plugin) return "--plugin";
  const auto file = conf.find("NCCL_NET_PLUGIN");
  if (file != conf.end()) return file->second;
  return request.plugin ? "environment" : "not set";
}

bool any_uses_slime(const std::vector<Resolution>& resolutions) {
  for (const Resolution& resolution : resolutions) {
    if (resolution.outcome == Outcome::kSlime) return true;
  }
  return false;
}

LoadingReport collect_loading(const KnownNccl& nccl, Resolver* resolver) {
  LoadingReport report;
  report.request = resolver->request();
  report.nccl = nccl.version;
  report.nccl_source = nccl.source;
  if (nccl.version) {
    report.resolutions.push_back(resolver->resolve(era_of(*nccl.version)));
  } else {
    for (const Era& era : eras()) {
      if (era.last >= oldest_usable()) report.resolutions.push_back(resolver->resolve(era));
    }
  }
  report.advice = advise(report.resolutions, resolver);
  report.usable = any_uses_slime(report.resolutions);
  for (const Library* library : resolver->libraries().asked()) {
    report.libraries.push_back(*library);
  }
  return report;
}

// What the newest release in question would use; else what lies beside this program.
DevicesReport collect_devices(const LoadingReport& loading, Resolver* resolver) {
  DevicesReport report;
  std::string name;
  int table = 0;
  for (const Resolution& resolution : loading.resolutions) {
    const Attempt* const used = resolution.used();
    if (used == nullptr || !can_query(used->table)) continue;
    name = used->name;
    table = used->table;
    report.would_load = true;
  }
  if (!report.would_load) {
    const std::string directory = slime_directory();
    if (directory.empty()) {
      report.query.error =
          "no libnet-slime.so in LD_LIBRARY_PATH or beside this program; run "
          "'make' or 'make install'";
      return report;
    }
    name = join(directory, "libnet-slime.so");
  }
  const Library& library = resolver->libraries().open(name);
  report.path = library.path;
  report.query.error = library.error;
  if (table == 0) table = library.newest_table_within(6, 12);
  if (table == 0) return report;
  report.query = resolver->query(name, table);
  report.called = library.net_tables.at(table);
  report.usable = report.query.error.empty() && report.query.count() > 0;
  return report;
}

// The plugin names its commit in the line with which it starts (plugin/announce.cc).
bool is_other_build(const DeviceQuery& query) {
  for (const std::string& message : query.messages) {
    const size_t commit = message.find("(commit ");
    if (commit != std::string::npos) {
      return message.compare(commit, 8 + sizeof SLIME_COMMIT, "(commit " SLIME_COMMIT ")") != 0;
    }
  }
  return false;
}

}  // namespace

bool Report::usable() const {
  return (!loading || loading->usable) && (!devices || devices->usable) &&
         (!settings || settings->errors.empty()) && (!topology || topology->usable()) &&
         (!transports || transports->usable());
}

Result<Report> collect(const Options& options, const Sources& conf) {
  Report report;
  if (options.all() || options.loading || options.devices) {
    Request request = request_from_environment();
    if (options.plugin) request.plugin = options.plugin;
    const auto nccl = find_nccl(options.nccl);
    if (!nccl) return fail(nccl.error());
    Resolver resolver(request);
    LoadingReport loading = collect_loading(*nccl, &resolver);
    loading.plugin_source = source_of_plugin(options, request, conf);
    if (options.all() || options.devices) report.devices = collect_devices(loading, &resolver);
    if (options.all() || options.loading) report.loading = std::move(loading);
  }
  // After the last child process: rails may start threads, and a fork wants one thread.
  const SettingsReport settings = report_settings(conf);
  if (report.devices && report.devices->called == kPluginName) {
    report.devices->rails = report_rails(settings.settings);
    report.devices->other_build = is_other_build(report.devices->query);
  }
  if (options.topology) {
    report.topology = report_topology(settings.settings);
    if (!settings.errors.empty()) report.topology->error = settings.errors.front();
  }
  if (options.transports) report.transports = report_transports(settings.settings);
  if (options.all() || options.settings) report.settings = settings;
  return report;
}

}  // namespace slime::info
