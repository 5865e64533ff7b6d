#include "tools/perf/report_parts.h"

#include <sys/resource.h>

#include "tools/perf/words.h"

namespace slime::perf {
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
