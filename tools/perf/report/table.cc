#include <slime_version.h>

#include <algorithm>
#include <map>

#include "tools/perf/report/report.h"
#include "transports/rail_counters.h"

namespace slime::perf {
namespace {

// At most `width` characters: fewer decimals for larger numbers, as nccl-tests does.
std::string number(double value, int width) {
  char text[64];
  for (int decimals = 2; decimals >= 0; --decimals) {
    if (snprintf(text, sizeof text, "%*.*f", width, decimals, value) <= width) return text;
  }
  snprintf(text, sizeof text, "%*.*e", width, width >= 7 ? 1 : 0, value);
  return text;
}

// The counters in the order of the table they come from, then what a newer plugin may add.
std::vector<std::string> counter_names(const RailLine& rail) {
  std::vector<std::string> names;
#define SLIME_NAME(name, help) \
  if (rail.counters.contains(#name)) names.push_back(#name);
  SLIME_RAIL_COUNTERS(SLIME_NAME)
#undef SLIME_NAME
  for (const auto& [name, value] : rail.counters.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

void Table::begin(const Options& options, const RunInfo& info) {
  if (out_ == nullptr) return;
  const bool factor = options.step_bytes == 0;
  fprintf(out_, "# slime-perf %s (%s)  %s\n", SLIME_VERSION, SLIME_COMMIT,
          info.plugin_path.c_str());
  fprintf(out_, "# plugin %s, %s API v%d, %s buffers, %d channel%s, protocol %s\n",
          info.plugin_name.c_str(), options.algorithm == Algorithm::kCollNet ? "CollNet" : "net",
          info.api_version, info.direct ? "registered user" : "staged", info.channels,
          info.channels == 1 ? "" : "s", info.protocol.c_str());
  fprintf(out_,
          "# minBytes %lu maxBytes %lu step: %lu(%s) warmup iters: %u iters: %u validation: %u\n",
          options.min_bytes, options.max_bytes, factor ? options.step_factor : options.step_bytes,
          factor ? "factor" : "bytes", options.warmups, options.iterations, options.checks);
  if (options.duration_s > 0) {
    fprintf(out_, "# for %g s each; SIGINT or SIGTERM ends the run\n", options.duration_s);
  }
  shows_spread_ = options.duration_s > 0;
  fprintf(out_, "#\n# Using devices\n");
  for (size_t rank = 0; rank < info.members.size(); ++rank) {
    std::string names;
    for (const auto& device : info.members[rank]["devices"]) {
      names += (names.empty() ? "" : ", ") + device.get<std::string>();
    }
    fprintf(out_, "#  Rank %2zu Pid %6ld on %10s device %s\n", rank,
            info.members[rank]["pid"].get<long>(),
            info.members[rank]["host"].get<std::string>().c_str(), names.c_str());
  }
  fprintf(out_,
          "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       "
          "in-place          \n",
          "", "", "", "", "");
  const auto columns = [this](const char* size, const char* count, const char* type, const char* op,
                              const char* root, const char* time, const char* bw, const char* bus,
                              const char* wrong) {
    fprintf(out_, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", size,
            count, type, op, root, time, bw, bus, wrong, time, bw, bus, wrong);
  };
  columns("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
  columns("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
  fflush(out_);
}

void Table::half(const Measurement& measurement) {
  const std::string wrong =
      measurement.wrong ? std::to_string(*measurement.wrong) : std::string("N/A");
  fprintf(out_, "  %s  %s  %s  %6s", number(measurement.mean_us, 7).c_str(),
          number(measurement.algorithm_gb_s, 6).c_str(), number(measurement.bus_gb_s, 6).c_str(),
          wrong.c_str());
}

void Table::row(const Row& row) {
  if (out_ == nullptr) return;
  fprintf(out_, "%12lu  %12lu  %8s  %6s  %6d", row.bytes, row.count, name_of(row.type).data(),
          row.op ? name_of(*row.op).data() : "none", row.root);
  half(row.out_of_place);
  half(row.in_place);
  fputc('\n', out_);
  if (shows_spread_) {
    spread("out of place", row.out_of_place);
    spread("in place", row.in_place);
  }
  fflush(out_);
}

void Table::spread(const char* which, const Measurement& measurement) {
  if (measurement.operations == 0) {
    fprintf(out_, "#   %s: not timed\n", which);
    return;
  }
  fprintf(out_, "#   %s: %lu operations of %.1f us, p99 %.1f us, max %.1f us\n", which,
          measurement.operations, measurement.mean_us, measurement.p99_us, measurement.max_us);
}

void Table::end(const Report& report, Collective collective) {
  if (out_ == nullptr) return;
  const uint64_t wrong = wrong_values(report.rows);
  if (report.ended_early) fprintf(out_, "# Ended early, as asked: the rows above are all\n");
  fprintf(out_, "# %-20s : %lu %s\n", "Out of bounds values", wrong, wrong > 0 ? "FAILED" : "OK");
  fprintf(out_, "# %-20s : %g\n", "Avg bus bandwidth", average_bus_gb_s(report.rows));
  fprintf(out_, "#\n");
  for (const RailLine& rail : sum_rails(report.rails)) {
    fprintf(out_, "# rail %s on %s (device %s, %s %s, %lu Mb/s):", rail.rail.c_str(),
            rail.host.c_str(), rail.device.c_str(), rail.transport.c_str(), rail.address.c_str(),
            rail.speed_mbps);
    for (const std::string& name : counter_names(rail)) {
      fprintf(out_, " %s %s", name.c_str(), rail.counters[name].dump().c_str());
    }
    fputc('\n', out_);
  }
  if (!report.rails_note.empty()) fprintf(out_, "# rails: %s\n", report.rails_note.c_str());
  fprintf(out_, "#\n# Collective test concluded: %s\n", name_of(collective).data());
  fflush(out_);
}

double average_bus_gb_s(const std::vector<Row>& rows) {
  double sum = 0, halves = 0;
  for (const Row& row : rows) {
    for (const Measurement* half : {&row.out_of_place, &row.in_place}) {
      sum += half->bus_gb_s;
      halves += half->operations > 0 ? 1 : 0;
    }
  }
  return halves > 0 ? sum / halves : 0;
}

uint64_t wrong_values(const std::vector<Row>& rows) {
  uint64_t halves = 0;
  for (const Row& row : rows) {
    halves += row.out_of_place.wrong.value_or(0) > 0;
    halves += row.in_place.wrong.value_or(0) > 0;
  }
  return halves;
}

std::vector<RailLine> sum_rails(const std::vector<RailLine>& rails) {
  std::map<std::string, RailLine> sums;
  for (const RailLine& rail : rails) {
    const auto [found, is_new] = sums.try_emplace(
        rail.host + "\n" + rail.device + "\n" + rail.rail + "\n" + rail.transport, rail);
    if (is_new) continue;
    for (const auto& [name, value] : rail.counters.items()) {
      nlohmann::json& sum = found->second.counters[name];
      const uint64_t before = sum.is_number_unsigned() ? sum.get<uint64_t>() : 0;
      const auto here = value.get<uint64_t>();
      sum = name.ends_with("_max") ? std::max(before, here) : before + here;
    }
  }
  std::vector<RailLine> result;
  result.reserve(sums.size());
  for (auto& [key, rail] : sums) result.push_back(std::move(rail));
  return result;
}

}  // namespace slime::perf
