// The report for programs. Keys are an interface: a test or a user's script may read any of them.
#include <slime_version.h>

#include "tools/info/report.h"

namespace slime {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TransportState, name, exists, wanted, rails, reason)
}

namespace slime::info {

NLOHMANN_JSON_SERIALIZE_ENUM(Verdict, {{Verdict::kUsed, "used"},
                                       {Verdict::kNotFound, "not_found"},
                                       {Verdict::kNotLoadable, "not_loadable"},
                                       {Verdict::kNoTable, "no_table"},
                                       {Verdict::kNoDevices, "no_devices"},
                                       {Verdict::kOtherNetWanted, "other_net_wanted"},
                                       {Verdict::kNotReached, "not_reached"}})

NLOHMANN_JSON_SERIALIZE_ENUM(Outcome, {{Outcome::kSlime, "slime"},
                                       {Outcome::kOtherPlugin, "other_plugin"},
                                       {Outcome::kInternal, "internal"},
                                       {Outcome::kFailure, "failure"}})

namespace {

using nlohmann::json;

json or_null(const std::optional<std::string>& value) { return value ? json(*value) : json(); }

template <typename List, typename Convert>
json array_of(const List& list, Convert convert) {
  json array = json::array();
  for (const auto& each : list) array.push_back(convert(each));
  return array;
}

json library_json(const Library& library) {
  json whole = library;
  whole["opened"] = library.opened();
  json& tables = whole["net_tables"] = json::object();
  for (const auto& [version, called] : library.net_tables) tables[std::to_string(version)] = called;
  return whole;
}

json attempt_json(const Attempt& attempt) {
  return {
      {"entry", attempt.entry},     {"dlopen", attempt.name.empty() ? json() : json(attempt.name)},
      {"verdict", attempt.verdict}, {"table", attempt.table},
      {"called", attempt.called},   {"why_not", attempt.detail}};
}

json resolution_json(const Resolution& resolution) {
  return {{"nccl", release_names({&resolution.rules, 1})},
          {"newest_table", resolution.rules->newest_table},
          {"oldest_table", resolution.rules->oldest_table},
          {"attempts", array_of(resolution.attempts, attempt_json)},
          {"outcome", resolution.outcome}};
}

json finding_json(const Finding& finding) {
  return {{"text", finding.text}, {"nccl", release_names(finding.releases)}};
}

json loading_json(const LoadingReport& loading) {
  return {{"nccl_version", loading.nccl.version ? json(to_string(*loading.nccl.version)) : json()},
          {"nccl_source", loading.nccl.source},
          {"NCCL_NET_PLUGIN", or_null(loading.request.plugin)},
          {"NCCL_NET_PLUGIN_source", loading.plugin_source},
          {"NCCL_NET", or_null(loading.request.net)},
          {"files", array_of(loading.libraries, library_json)},
          {"releases", array_of(loading.resolutions, resolution_json)},
          {"problems", array_of(loading.problems, finding_json)},
          {"hints", array_of(loading.hints, finding_json)},
          {"commands", loading.commands},
          {"usable", loading.usable()}};
}

json devices_json(const DevicesReport& report) {
  return {{"plugin", report.path},
          {"called", report.called},
          {"table", report.table},
          {"would_load", report.would_load},
          {"other_build", report.other_build},
          {"error", report.query.error.empty() ? report.rails_error : report.query.error},
          {"devices", report.query.devices},
          {"skipped", report.skipped},
          {"environment_set_by_init", report.query.changes},
          {"warnings", report.query.warnings},
          {"messages", report.query.messages}};
}

json setting_json(const SettingRow& row) {
  return {{"name", row.name},     {"value", row.value},
          {"source", row.source}, {"default", row.default_value},
          {"type", row.type},     {"unit", row.unit},
          {"range", row.range},   {"fallback", row.fallback},
          {"help", row.help}};
}

}  // namespace

nlohmann::json to_json(const Report& report) {
  json whole = {{"tool", "slime-info"},
                {"version", SLIME_VERSION},
                {"commit", SLIME_COMMIT},
                {"usable", report.usable()}};
  if (report.loading) whole["loading"] = loading_json(*report.loading);
  if (report.devices) whole["devices"] = devices_json(*report.devices);
  if (report.transports) whole["transports"] = report.transports->states;
  if (report.topology) whole["topology"] = topology_json(*report.topology);
  if (report.settings) {
    whole["settings"] = {{"rows", array_of(report.settings->rows, setting_json)},
                         {"errors", report.settings->errors},
                         {"warnings", report.settings->warnings}};
  }
  return whole;
}

}  // namespace slime::info
