#include <slime_version.h>
#include <sys/resource.h>

#include <ctime>

#include "tools/common/machine.h"
#include "tools/perf/report/report.h"
#include "tools/perf/words.h"

namespace slime::perf {
namespace {

using nlohmann::json;

json to_json(const Measurement& measurement) {
  return {{"operations", measurement.operations},
          {"time_us", measurement.mean_us},
          {"slowest_rank_us", measurement.slowest_us},
          {"best_us", measurement.best_us},
          {"median_us", measurement.median_us},
          {"p99_us", measurement.p99_us},
          {"max_us", measurement.max_us},
          {"algbw_GBps", measurement.algorithm_gb_s},
          {"busbw_GBps", measurement.bus_gb_s},
          {"best_busbw_GBps", measurement.best_bus_gb_s},
          {"checked", measurement.checked},
          {"wrong", measurement.wrong ? json(*measurement.wrong) : json(nullptr)}};
}

json to_json(const Row& row) {
  return {{"size", row.bytes},
          {"count", row.count},
          {"type", name_of(row.type)},
          {"redop", row.op ? name_of(*row.op) : "none"},
          {"root", row.root},
          {"protocol", name_of(row.protocol)},
          {"channels", row.channels},
          {"out_of_place", to_json(row.out_of_place)},
          {"in_place", to_json(row.in_place)}};
}

json to_json(const RailLine& rail) {
  json line = {{"rank", rail.rank},
               {"host", rail.host},
               {"device", rail.device},
               {"rail", rail.rail},
               {"transport", rail.transport},
               {"address", rail.address},
               {"speed_mbps", rail.speed_mbps}};
  line.update(rail.counters);
  return line;
}

template <typename T>
json list_of(const std::vector<T>& items) {
  json list = json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

std::string utc_now() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

nlohmann::json to_json(const Report& report, const Options& options) {
  const RunInfo& info = report.info;
  return {
      {"tool", "slime-perf"},
      {"version", SLIME_VERSION},
      {"commit", SLIME_COMMIT},
      {"time", utc_now()},
      {"command", info.command},
      {"collective", name_of(options.collective)},
      {"machine", tools::to_json(tools::describe_machine())},
      {"environment", tools::environment_with("NCCL_")},
      {"launcher", info.launcher},
      {"ranks", info.ranks},
      {"members", info.members},
      {"plugin",
       {{"path", info.plugin_path},
        {"name", info.plugin_name},
        {"api_version", info.api_version},
        {"devices", info.devices}}},
      {"algorithm", name_of(options.algorithm)},
      {"buffers", info.direct ? "direct" : "staged"},
      {"channels", info.channels},
      {"protocol", info.protocol},
      {"iterations", options.iterations},
      {"warmups", options.warmups},
      {"checks", options.checks},
      {"duration_s", options.duration_s},
      {"rows", list_of(report.rows)},
      {"rails", list_of(report.rails)},
      {"processes", report.processes},
      {"out_of_bounds", wrong_values(report.rows)},
      {"average_busbw_GBps", average_bus_gb_s(report.rows)},
      {"ended_early", report.ended_early},
      {"error", report.error.empty() ? json(nullptr) : json(report.error)},
      {"exit_code", report.exit_code},
  };
}

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

RailLine line_of(const nlohmann::json& rail, int rank, const std::string& host) {
  RailLine line{rank,
                host,
                text_in(rail, "device"),
                text_in(rail, "rail"),
                text_in(rail, "transport"),
                text_in(rail, "address"),
                static_cast<uint64_t>(number_in(rail, "speed_mbps", 0)),
                nlohmann::json::object()};
  for (const auto& [name, value] : rail.items()) {
    if (value.is_number_unsigned() && name != "speed_mbps") line.counters[name] = value;
  }
  return line;
}

}  // namespace

nlohmann::json part_of_report(const CounterFile& counters) {
  nlohmann::json part = nlohmann::json::object();
  if (const auto rails = counters.read()) {
    part["rails"] = *rails;
  } else {
    part["note"] = rails.error().what;
  }
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  part["user_s"] = seconds(usage.ru_utime);
  part["system_s"] = seconds(usage.ru_stime);
  part["context_switches"] = usage.ru_nvcsw + usage.ru_nivcsw;
  return part;
}

Result<void> add_parts(const std::vector<nlohmann::json>& parts, const std::vector<RankInfo>& ranks,
                       Report* report) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const nlohmann::json& part = parts[rank];
    if (!part.is_object()) return fail(make_error(Status::kRemote, 0, "malformed counters"));
    const std::string note = text_in(part, "note");
    if (!note.empty()) report->rails_note = note;
    nlohmann::json process = part;
    process.erase("rails");
    process.erase("note");
    report->processes.push_back(std::move(process));
    for (const nlohmann::json& rail : part.value("rails", nlohmann::json::array())) {
      if (!rail.is_object()) continue;
      report->rails.push_back(line_of(rail, static_cast<int>(rank), ranks[rank].host));
    }
  }
  return {};
}

}  // namespace slime::perf
