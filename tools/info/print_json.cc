#include <slime_version.h>

#include "tools/info/attempt_words.h"
#include "tools/info/print.h"

namespace slime::info {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json library_json(const Library& library) {
  json tables = json::object();
  for (const auto& [version, called] : library.net_tables) tables[std::to_string(version)] = called;
  return {{"name", library.name},
          {"opened", library.opened},
          {"path", library.path},
          {"real_path", library.real_path},
          {"found_by", library.found_by},
          {"missing", library.missing},
          {"error", library.error},
          {"net_tables", tables},
          {"collnet_tables", library.collnet_tables},
          {"tuner_tables", library.tuner_tables}};
}

const char* word_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUsed:
      return "used";
    case Verdict::kNotFound:
      return "not_found";
    case Verdict::kNotLoadable:
      return "not_loadable";
    case Verdict::kNoTable:
      return "no_table";
    case Verdict::kNoDevices:
      return "no_devices";
    case Verdict::kOtherNetWanted:
      return "other_net_wanted";
    case Verdict::kNotReached:
      return "not_reached";
  }
  return "";
}

const char* word_for(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSlime:
      return "slime";
    case Outcome::kOtherPlugin:
      return "other_plugin";
    case Outcome::kInternal:
      return "internal";
    case Outcome::kFailure:
      return "failure";
  }
  return "";
}

json resolution_json(const Resolution& resolution) {
  json attempts = json::array();
  for (const Attempt& attempt : resolution.attempts) {
    attempts.push_back({{"entry", attempt.entry},
                        {"dlopen", attempt.name.empty() ? json(nullptr) : json(attempt.name)},
                        {"verdict", word_for(attempt.verdict)},
                        {"table", attempt.table},
                        {"called", attempt.called},
                        {"why_not", attempt.detail}});
  }
  return {{"nccl", to_string(*resolution.era)},
          {"newest_table", resolution.era->newest_table},
          {"oldest_table", resolution.era->oldest_table},
          {"attempts", attempts},
          {"outcome", word_for(resolution.outcome)}};
}

json findings_json(const std::vector<Finding>& findings) {
  json list = json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"text", finding.text}, {"nccl", to_string(finding.eras)}});
  }
  return list;
}

json loading_json(const LoadingReport& loading) {
  json resolutions = json::array(), libraries = json::array();
  for (const auto& resolution : loading.resolutions) {
    resolutions.push_back(resolution_json(resolution));
  }
  for (const Library& library : loading.libraries) libraries.push_back(library_json(library));
  return {{"nccl_version", loading.nccl ? json(to_string(*loading.nccl)) : json(nullptr)},
          {"nccl_source", loading.nccl_source},
          {"NCCL_NET_PLUGIN", or_null(loading.request.plugin)},
          {"NCCL_NET_PLUGIN_source", loading.plugin_source},
          {"NCCL_NET", or_null(loading.request.net)},
          {"files", libraries},
          {"releases", resolutions},
          {"problems", findings_json(loading.advice.problems)},
          {"hints", findings_json(loading.advice.hints)},
          {"commands", loading.advice.commands},
          {"usable", loading.usable}};
}

json devices_json(const DevicesReport& report) {
  json devices = report.query.devices;
  for (json& device : devices) {
    for (const json& rails : report.rails.devices) {
      if (rails.at("name") == device.at("name")) device["rails"] = rails.at("rails");
    }
  }
  return {{"plugin", report.path},
          {"called", report.called},
          {"table", report.query.table},
          {"would_load", report.would_load},
          {"other_build", report.other_build},
          {"error", report.query.error.empty() ? report.rails.error : report.query.error},
          {"devices", devices},
          {"skipped", report.rails.skipped},
          {"environment_set_by_init", report.query.changes},
          {"warnings", report.query.warnings},
          {"messages", report.query.messages}};
}

json settings_json(const SettingsReport& report) {
  json rows = json::array();
  for (const SettingRow& row : report.rows) {
    rows.push_back({{"name", row.name},
                    {"value", row.value},
                    {"source", row.source},
                    {"default", row.default_value},
                    {"type", row.type},
                    {"unit", row.unit},
                    {"range", row.range},
                    {"fallback", row.fallback},
                    {"help", row.help}});
  }
  return {{"rows", rows}, {"errors", report.errors}, {"warnings", report.warnings}};
}

}  // namespace

nlohmann::json to_json(const Report& report) {
  json whole = {{"tool", "slime-info"},
                {"version", SLIME_VERSION},
                {"commit", SLIME_COMMIT},
                {"usable", report.usable()}};
  if (report.loading) whole["loading"] = loading_json(*report.loading);
  if (report.devices) whole["devices"] = devices_json(*report.devices);
  if (report.transports) whole["transports"] = transports_json(*report.transports);
  if (report.topology) whole["topology"] = topology_json(*report.topology);
  if (report.settings) whole["settings"] = settings_json(*report.settings);
  return whole;
}

}  // namespace slime::info
